package iac

import (
	"context"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/types"

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
