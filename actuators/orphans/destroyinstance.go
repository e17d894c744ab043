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
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/adoption"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/events"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
)

// maxDestroyed bounds the destroys per inventory, to limit the damage of a wrong one.
const maxDestroyed = 10

// destroyInstances destroys instances that have been orphans for the grace period, if the policy
// allows. Each is adopted as a Machine, which is then deleted. An instance without a Machine's UID
// may belong to the cluster otherwise, such as to its control plane. One without this
// installation's UID may have its owner in another namespace or cluster, which this process cannot
// see.
func (i *Inventory) destroyInstances(ctx context.Context, report *lifecycle.InventoryReport,
	machines []machinev1beta1.Machine) error {
	if i.Policy != PolicyDelete || i.Installation == nil {
		return nil
	}
	byName := map[string]*machinev1beta1.Machine{}
	for n := range machines {
		byName[machines[n].Name] = &machines[n]
	}
	var failed []error
	for n := range machines {
		if due := machines[n].Annotations[record.OrphanActionAnnotation] == record.OrphanDestroy; due &&
			machines[n].DeletionTimestamp.IsZero() {
			failed = append(failed, i.delete(ctx, &machines[n])) // created by the last inventory, which failed to delete it
		}
	}
	for _, one := range destroyable(report, i.GracePeriod, i.Installation.UID()) {
		if like := byName[one.ListedBy]; like != nil {
			if err := i.destroyInstance(ctx, one, like); err != nil {
				failed = append(failed, fmt.Errorf("destroying instance %s: %w", one.ProviderID, err))
			}
		}
	}
	return errors.Join(failed...)
}

// destroyable returns the instances that may be destroyed. Each carries the UIDs of a Machine and
// of this installation, and an earlier inventory of this process has found it orphaned, a grace
// period ago.
func destroyable(report *lifecycle.InventoryReport, grace time.Duration, own types.UID) []lifecycle.OrphanedInstance {
	found := slices.DeleteFunc(slices.Clone(report.Instances), func(one lifecycle.OrphanedInstance) bool {
		twice := one.FirstSeen.Before(report.Checked) && !report.Checked.Before(one.FirstSeen.Add(grace))
		return !one.Orphaned || !one.LastListed.IsZero() || !twice || one.MachineUID == "" || own == "" ||
			one.Installation != string(own)
	})
	return found[:min(len(found), maxDestroyed)]
}

// destroyInstance creates an instance's Machine and deletes it.
func (i *Inventory) destroyInstance(ctx context.Context, one lifecycle.OrphanedInstance,
	like *machinev1beta1.Machine) error {
	var machine *machinev1beta1.Machine
	var err error
	for _, name := range lifecycle.OrphanMachineNames(one.Name, one.ProviderID) {
		machine = lifecycle.MachineForOrphan(name, one.ProviderID, like, lifecycle.AdoptionAdopt, i.Clock.Now())
		machine.Annotations[record.OrphanActionAnnotation] = record.OrphanDestroy
		var granted string
		if granted, err = adoption.NewGrant(i.Installation, machine, "", i.Clock.Now()); err != nil {
			return err
		}
		machine.Annotations[adoption.GrantAnnotation] = granted
		if err = i.Client.Create(ctx, machine); !apierrors.IsAlreadyExists(err) {
			break
		}
	}
	if err != nil {
		return err
	}
	i.Logger.Info("Destroying an orphaned instance as requested by --orphan-policy=Delete: adopting it as a Machine, "+
		"which is then deleted",
		"providerID", one.ProviderID, "machine", machine.Name, "machine-uid", one.MachineUID, "since", one.FirstSeen)
	events.Normal(machine, "OrphanedInstance", "DestroyInstance",
		fmt.Sprintf("created the Machine to destroy instance %s, an orphan since %s",
			one.ProviderID, one.FirstSeen.UTC().Format(time.RFC3339))).Send(i.Recorder)
	return i.delete(ctx, machine)
}

func (i *Inventory) delete(ctx context.Context, machine *machinev1beta1.Machine) error {
	uid := machine.UID
	return client.IgnoreNotFound(i.Client.Delete(ctx, machine, client.Preconditions{UID: &uid},
		client.PropagationPolicy(metav1.DeletePropagationBackground)))
}
