package iac

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// readMachine reads a Machine from the API server; nil when there is none of that UID.
func (a *Actuator) readMachine(ctx context.Context, key types.NamespacedName, uid types.UID) (*machinev1beta1.Machine, error) {
	machine := &machinev1beta1.Machine{}
	err := a.client.Get(ctx, key, machine)
	switch {
	case apierrors.IsNotFound(err), err == nil && machine.UID != uid:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the Machine: %w", err)
	}
	return machine, nil
}

// acquire takes a state's lock, and takes it over from a process whose engines can act no more. A lock of this very process is over as
// well: the pool holds one run per Machine, and that is the caller's.
func (a *Actuator) acquire(ctx context.Context, key state.Key, options state.AcquireOptions) (*state.Session, error) {
	options.Lock.Epoch = a.leader.Epoch()
	session, err := a.store.Acquire(ctx, key, options)
	if locked, ok := errors.AsType[*state.LockedError](err); ok {
		return a.takeOver(ctx, key, options, locked.Lock)
	}
	return session, err
}

// takeOver takes a lock that was met, if its holder can act no more.
func (a *Actuator) takeOver(ctx context.Context, key state.Key, options state.AcquireOptions, met state.Lock) (*state.Session, error) {
	if met.Owner != a.owner {
		wait, err := a.leader.DeadIn(ctx, met.Epoch)
		if err != nil {
			return nil, err
		}
		if wait > 0 {
			return nil, actuators.InProgress(wait, "the Machine's state is locked by another manager whose engines may still run (%s); "+
				"the lock is taken over when they cannot", met)
		}
		a.metrics.TakenOver()
	}
	a.logger.Info("Taking over the lock of a run that is dead", "state", key.String(), "lock", met.String())
	options.Break = &met
	return a.store.Acquire(ctx, key, options)
}

// writeWitness writes a witness on the Machine. It needs no resourceVersion: the annotation is this operator's alone.
func (a *Actuator) writeWitness(ctx context.Context, machine *machinev1beta1.Machine, w lifecycle.Witness) error {
	return a.patchWitness(ctx, machine, w.String())
}

// removeWitness removes the witness from a Machine whose instance is released.
func (a *Actuator) removeWitness(ctx context.Context, machine *machinev1beta1.Machine) error {
	return a.patchWitness(ctx, machine, nil)
}

// patchWitness writes a value of the annotation; nil removes it.
func (a *Actuator) patchWitness(ctx context.Context, machine *machinev1beta1.Machine, value any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": machine.UID, "annotations": map[string]any{lifecycle.WitnessAnnotation: value},
	}})
	if err != nil {
		return fmt.Errorf("writing annotation %s: %w", lifecycle.WitnessAnnotation, err)
	}
	target := machine.DeepCopy()
	if err := a.client.Patch(ctx, target, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		return fmt.Errorf("writing annotation %s on the Machine: %w", lifecycle.WitnessAnnotation, err)
	}
	return nil
}
