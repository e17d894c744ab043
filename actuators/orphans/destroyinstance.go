package orphans

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/cluster/events"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
)

// maxDestroyed bounds how many instances one inventory has destroyed: should it be wrong, not everything is gone at once.
const maxDestroyed = 10

// destroyInstances has instances destroyed, where the policy says so, that belong to nobody since the grace period: each gets a Machine that adopts
// it, and that is deleted. An instance that bears no Machine's UID may be of the cluster and none of its Machines, such as one of the control plane.
func (i *Inventory) destroyInstances(ctx context.Context, report *lifecycle.InventoryReport, machines []machinev1beta1.Machine) error {
	if i.Policy != PolicyDelete {
		return nil
	}
	byName := map[string]*machinev1beta1.Machine{}
	for n := range machines {
		byName[machines[n].Name] = &machines[n]
	}
	var failed []error
	for n := range machines {
		if due := machines[n].Annotations[record.OrphanActionAnnotation] == record.OrphanDestroy; due && machines[n].DeletionTimestamp.IsZero() {
			failed = append(failed, i.delete(ctx, &machines[n])) // the last inventory made it, and could not delete it
		}
	}
	for _, one := range destroyable(report, i.GracePeriod) {
		if like := byName[one.ListedBy]; like != nil {
			if err := i.destroyInstance(ctx, one, like); err != nil {
				failed = append(failed, fmt.Errorf("destroying the instance %s: %w", one.ProviderID, err))
			}
		}
	}
	return errors.Join(failed...)
}

// destroyable returns the instances of a report that may be destroyed: each bears a Machine's UID, and an earlier inventory has found it orphaned
// as well, a grace period ago.
func destroyable(report *lifecycle.InventoryReport, grace time.Duration) []lifecycle.OrphanedInstance {
	found := slices.DeleteFunc(slices.Clone(report.Instances), func(one lifecycle.OrphanedInstance) bool {
		twice := one.FirstSeen.Before(report.Checked) && !report.Checked.Before(one.FirstSeen.Add(grace))
		return !one.Orphaned || !twice || one.MachineUID == ""
	})
	return found[:min(len(found), maxDestroyed)]
}

// destroyInstance makes the Machine of an instance, and deletes it.
func (i *Inventory) destroyInstance(ctx context.Context, one lifecycle.OrphanedInstance, like *machinev1beta1.Machine) error {
	var machine *machinev1beta1.Machine
	var err error
	for _, name := range lifecycle.OrphanMachineNames(one.Name, one.ProviderID) {
		machine = lifecycle.MachineForOrphan(name, one.ProviderID, like, lifecycle.AdoptionAdopt, i.Clock.Now())
		machine.Annotations[record.OrphanActionAnnotation] = record.OrphanDestroy
		if err = i.Client.Create(ctx, machine); !apierrors.IsAlreadyExists(err) {
			break
		}
	}
	if err != nil {
		return err
	}
	i.Logger.Info("An instance that belongs to nobody is destroyed, as --orphan-policy=Delete asks for: it is adopted as a Machine, which is deleted",
		"providerID", one.ProviderID, "machine", machine.Name, "machine-uid", one.MachineUID, "since", one.FirstSeen)
	events.Normal(machine, "OrphanedInstance", "DestroyInstance", fmt.Sprintf("the Machine is made to destroy the instance %s, which belongs to nobody since %s",
		one.ProviderID, one.FirstSeen.UTC().Format(time.RFC3339))).Send(i.Recorder)
	return i.delete(ctx, machine)
}

func (i *Inventory) delete(ctx context.Context, machine *machinev1beta1.Machine) error {
	uid := machine.UID
	return client.IgnoreNotFound(i.Client.Delete(ctx, machine, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground)))
}
