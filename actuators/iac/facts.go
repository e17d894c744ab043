package iac

import (
	"context"
	"errors"
	"fmt"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// facts are what a decision is made from.
type facts struct {
	// stored says that there is a state Secret. Without one, everything below but run is zero.
	stored bool
	record record
	state  *state.State
	// raw is the state as it is stored, lock its lock; nil for none.
	raw  []byte
	lock *state.Lock
	// run is what the pool holds for the Machine; nil for nothing.
	run *runs.Status
	// provisioned says that the Machine has once carried an instance's outputs.
	provisioned bool
	// inputs are those remembered with the state, packed; nil when there are none.
	inputs []byte
	// drift is what the Machine says of drift.
	drift drift
}

// gather reads the facts of a Machine. The state is read from the API server itself: a cache could lag behind our own writes. The run is
// looked at first: one that ends meanwhile would else be over beside a state from before its end.
func (a *Actuator) gather(ctx context.Context, machine *machinev1beta1.Machine) (*facts, error) {
	status, known := a.pool.Status(machine.UID)
	f, err := a.read(ctx, machine)
	if err != nil {
		return nil, err
	}
	if known {
		f.run = &status
	}
	return f, nil
}

// read reads the facts of a Machine but for its run.
func (r *reader) read(ctx context.Context, machine *machinev1beta1.Machine) (*facts, error) {
	f := &facts{drift: driftOf(machine), provisioned: machine.Spec.ProviderID != nil && *machine.Spec.ProviderID != "" || len(machine.Status.Addresses) > 0}
	snapshot, err := r.store.Get(ctx, state.KeyFor(machine.Namespace, machine.UID))
	if errors.Is(err, state.ErrNotFound) {
		return f, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the Machine's state: %w", err)
	}
	f.stored, f.inputs, f.raw, f.lock = true, snapshot.Attachments[attachedInputs], snapshot.Raw, snapshot.Lock
	if f.record, err = readRecord(snapshot.Meta); err != nil {
		return nil, fmt.Errorf("reading the Machine's state %s: %w", snapshot.Key, err)
	}
	if f.state, err = snapshot.State(); err != nil {
		return nil, fmt.Errorf("reading the Machine's state %s: %w", snapshot.Key, err)
	}
	return f, nil
}

// resources reports whether the state knows of anything that only a destroy may end.
func (f *facts) resources() bool { return f.state != nil && len(f.state.Managed()) > 0 }

// instance reports whether the state has the instance, whole.
func (f *facts) instance() bool {
	if f.state == nil {
		return false
	}
	for _, resource := range f.state.Managed() {
		if isInstance(resource) {
			return resource.Instances > resource.Tainted+resource.Deposed
		}
	}
	return false
}

// isInstance reports whether a resource is the one that the module contract calls the instance.
func isInstance(resource state.Resource) bool {
	return resource.Module == "" && resource.Name == "this"
}

// isInstanceAddress does the same for an address.
func isInstanceAddress(address string) bool {
	return strings.HasSuffix(address, ".this") && strings.Count(address, ".") == 1
}

// exists is the answer to Exists.
func (f *facts) exists() bool {
	return f.instance() && (f.record.Check == nil || f.record.Check.Verdict != verdictMissing)
}

// lost reports whether an instance may exist that the state lacks: a run began that may have made it and has not settled, or the
// Machine has had an instance and its state is gone.
func (f *facts) lost() bool {
	if f.instance() {
		return false
	}
	return f.record.Intent != nil || f.provisioned && !f.stored
}

// settled reports whether the state was brought to a fingerprint and nothing has begun since.
func (f *facts) settled(fingerprint string) bool {
	return f.record.Intent == nil && f.record.Fingerprint == fingerprint
}

// active reports whether a run waits or executes.
func (f *facts) active() bool { return f.run != nil && f.run.Active() }
