package iac

import (
	"context"
	"errors"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// gather reads the facts of a Machine. The state is read from the API server itself: a cache could lag behind our own writes. The run is
// looked at first: one that ends meanwhile would else be over beside a state from before its end.
func (a *Actuator) gather(ctx context.Context, machine *machinev1beta1.Machine) (*lifecycle.Facts, error) {
	status, known := a.pool.Status(machine.UID)
	f, err := a.read(ctx, machine)
	if err != nil {
		return nil, err
	}
	if known {
		f.Run = &status
	}
	return f, nil
}

// read reads the facts of a Machine but for its run.
func (r *reader) read(ctx context.Context, machine *machinev1beta1.Machine) (*lifecycle.Facts, error) {
	snapshot, err := r.store.Get(ctx, state.KeyFor(machine.Namespace, machine.UID))
	if errors.Is(err, state.ErrNotFound) {
		return lifecycle.NewFacts(machine, nil)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the Machine's state: %w", err)
	}
	return lifecycle.NewFacts(machine, snapshot)
}
