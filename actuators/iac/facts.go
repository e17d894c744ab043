package iac

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// facts are what a decision is made from.
type facts struct {
	// gone says that there is no Machine of this UID any more, deleting that it is being deleted.
	gone, deleting bool
	// stored says that there is a state Secret. Without one, record, state, raw, lock and inputs are zero.
	stored bool
	record record
	state  *state.State
	// raw is the state as it is stored, lock its lock; nil for none.
	raw  []byte
	lock *state.Lock
	// run is what the pool holds for the Machine; nil for nothing, and for a run that decides for itself.
	run *runs.Status
	// provisioned says that the Machine has once carried an instance's outputs.
	provisioned bool
	// witness is what the Machine itself says of an instance; nil for nothing. restored is the UID of the Machine that it was copied from.
	witness  *witness
	restored string
	// confirmed is the lost run of which a person has said that it left nothing.
	confirmed string
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
	snapshot, err := r.store.Get(ctx, state.KeyFor(machine.Namespace, machine.UID))
	if errors.Is(err, state.ErrNotFound) {
		return factsOf(machine, nil)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the Machine's state: %w", err)
	}
	return factsOf(machine, snapshot)
}

// factsOf returns the facts that a Machine and its state are; snapshot is nil where there is no state.
func factsOf(machine *machinev1beta1.Machine, snapshot *state.Snapshot) (*facts, error) {
	f := &facts{
		deleting: !machine.DeletionTimestamp.IsZero(), drift: driftOf(machine), witness: witnessOf(machine), restored: restored(machine),
		confirmed:   machine.Annotations[NoInstanceAnnotation],
		provisioned: machine.Spec.ProviderID != nil && *machine.Spec.ProviderID != "" || len(machine.Status.Addresses) > 0,
	}
	if snapshot == nil {
		return f, nil
	}
	f.stored, f.inputs, f.raw, f.lock = true, snapshot.Attachments[attachedInputs], snapshot.Raw, snapshot.Lock
	var err error
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

// exists reports whether the state has the instance, and no check has seen it to be gone.
func (f *facts) exists() bool {
	return f.instance() && !f.missing()
}

// lost reports whether an instance may exist that the state lacks: a run began that may have made it and has not settled, or the
// Machine says that there was one and its state is gone.
func (f *facts) lost() bool {
	switch {
	case f.instance() || f.destroyed():
		return false
	case f.record.Intent != nil:
		return f.record.Intent.lostRun() != ""
	}
	return !f.stored && f.witness != nil
}

// lostRun names the run that may have made an instance which the state lacks.
func (f *facts) lostRun() string {
	switch {
	case f.record.Intent != nil:
		return f.record.Intent.lostRun()
	case f.witness != nil:
		return f.witness.Run
	}
	return ""
}

// confirmedAbsent reports whether a person has said that the lost run left nothing.
func (f *facts) confirmedAbsent() bool { return f.confirmed != "" && f.confirmed == f.lostRun() }

// bound reports whether the Machine is bound to the place that is recorded: something of it is there, or may be. Where a person has said
// that a lost run left nothing, what that run did not finish is not there.
func (f *facts) bound() bool {
	confirmed := f.confirmedAbsent()
	if f.lost() && !confirmed {
		return true
	}
	return f.state != nil && slices.ContainsFunc(f.state.Managed(), func(r state.Resource) bool {
		return r.Type != "terraform_data" && (!confirmed || r.Instances > r.Tainted+r.Deposed) // that type is in the state only
	})
}

// destroyed reports whether the instance was proven to be gone by a destroy.
func (f *facts) destroyed() bool {
	return f.witness != nil && f.witness.Destroyed != nil ||
		!f.stored && f.run != nil && f.run.Operation == runs.Destroy && f.run.Phase == runs.Succeeded
}

// foreign reports whether the Machine has an instance that this operator has never had a part in.
func (f *facts) foreign() bool {
	return f.provisioned && !f.stored && f.witness == nil && !f.destroyed()
}

// since says for people since when there is an instance.
func (f *facts) since() string {
	if f.witness == nil {
		return "some time"
	}
	return f.witness.Since.UTC().Format(time.RFC3339)
}

// missing reports whether the instance was seen to be gone.
func (f *facts) missing() bool {
	return f.record.Check != nil && f.record.Check.Verdict == verdictMissing
}

// settled reports whether the state was brought to a fingerprint and nothing has begun since.
func (f *facts) settled(fingerprint string) bool {
	return f.record.Intent == nil && f.record.Fingerprint == fingerprint
}

// active reports whether a run waits or executes.
func (f *facts) active() bool { return f.run != nil && f.run.Active() }
