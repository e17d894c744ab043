package iac

import (
	"context"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// DestroyWithoutMachine submits the destroy of the resources in the state of a deleted Machine. The
// run decides under the lock whether the destroy is wanted.
func (a *Actuator) DestroyWithoutMachine(key types.NamespacedName, uid types.UID) (runs.Status, error) {
	machine := &machinev1beta1.Machine{}
	machine.Namespace, machine.Name, machine.UID = key.Namespace, key.Name, uid
	t := newTask(a, machine, runs.Destroy)
	request := t.request(nil)
	request.Task = t
	return a.pool.Submit(request)
}

// AcquireIdle takes the lock of a state outside a run: see package recovery.
func (a *Actuator) AcquireIdle(ctx context.Context, key state.Key, operation string,
	options state.AcquireOptions) (*state.Session, error) {
	return a.recovery.AcquireIdle(ctx, key, operation, options)
}

// UnsavedStates returns the unsaved states that list resources missing from all other states.
// Unsaved states that no longer do are dropped.
func (a *Actuator) UnsavedStates(ctx context.Context, namespace string) ([]state.Orphan, error) {
	return a.recovery.UnsavedStates(ctx, namespace)
}

// unclaimed returns an error if another Machine refers to the resources in a deleted Machine's
// state. Such a Machine was restored from a backup or copied, and would lose its instance.
func (t *task) unclaimed(ctx context.Context) error {
	if !t.facts.Gone {
		return nil
	}
	providerID := ""
	if has, err := t.facts.Outputs(); err == nil {
		providerID = has.ProviderID
	}
	machines := &machinev1beta1.MachineList{}
	if err := t.actuator.client.List(ctx, machines, client.InNamespace(t.key.Namespace)); err != nil {
		return fmt.Errorf("listing Machines: %w", err)
	}
	for i := range machines.Items {
		if named := record.Names(&machines.Items[i], t.uid, providerID); named != "" {
			return actuators.DeleteFailed("not destroying the resources in the state: Machine %s refers to them: %s",
				machines.Items[i].Name, named)
		}
	}
	return nil
}
