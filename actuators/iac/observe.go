package iac

import (
	"context"
	"encoding/json"
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/actuators/reporting"
	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/desired"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// observation is what a verb has observed of a Machine, and what it publishes.
type observation struct {
	asked   runs.Operation
	machine *machinev1beta1.Machine
	facts   *lifecycle.Facts
	// status is the provider status, decoded once; before is what it was.
	status, before v1alpha1.TerraformMachineProviderStatus
	// outputs are those of an instance that is to be updated; nil otherwise.
	outputs *lifecycle.Outputs
	// waiting says that an address is waited for, and that nothing else is decided meanwhile; nil otherwise.
	waiting error
	// claims says that the Machine takes addresses from pools.
	claims bool
	// choice is the desired state, choiceErr why there is none.
	choice    desired.Choice
	choiceErr error
}

func newObservation(asked runs.Operation, machine *machinev1beta1.Machine, f *lifecycle.Facts) *observation {
	o := &observation{asked: asked, machine: machine, facts: f, status: readProviderStatus(machine)}
	o.before = o.status
	o.before.Conditions = slices.Clone(o.status.Conditions)
	return o
}

// observe reads what there is of a Machine, and what it asks for.
func (a *Actuator) observe(ctx context.Context, machine *machinev1beta1.Machine, asked runs.Operation) (*observation, error) {
	f, err := a.facts(ctx, machine)
	if err != nil {
		return nil, err
	}
	o := newObservation(asked, machine, f)
	if asked == runs.Update && f.State != nil && !f.Unrecorded() {
		if o.outputs, err = f.Outputs(); err != nil {
			return nil, actuators.UpdateFailed("%s", err.Error())
		}
		o.status.Run = nil // until one is found to be in progress
	}
	if o.waiting = a.claimAddresses(ctx, o); o.waiting == nil {
		o.choice, o.choiceErr = a.choose(ctx, o.machine, f, asked)
	}
	return o, nil
}

// facts reads the facts about a Machine, its run first: one that ends meanwhile would else be over beside a state from before its end.
func (a *Actuator) facts(ctx context.Context, machine *machinev1beta1.Machine) (*lifecycle.Facts, error) {
	if f, handed := actuators.Handed[*lifecycle.Facts](ctx, machine.UID); handed {
		return f, nil
	}
	status, known := a.pool.Status(machine.UID)
	f, err := a.desired.Facts(ctx, machine)
	if err != nil {
		return nil, reporting.Unreadable(err)
	}
	if known {
		f.Run = &status
	}
	return f, nil
}

// choose returns the desired state of a Machine for an operation, with errors of the Machine API.
func (a *Actuator) choose(ctx context.Context, machine *machinev1beta1.Machine, f *lifecycle.Facts, operation runs.Operation) (desired.Choice, error) {
	c, err := a.desired.Choose(ctx, machine, f, operation)
	if failed := reporting.OfDesired(operation, err); failed != nil {
		return c, failed
	}
	return c, err
}

// target returns what the facts of an observation are compared with now.
func (a *Actuator) target(o *observation) lifecycle.Target {
	addresses := o.machine.Status.Addresses
	if o.outputs != nil && len(o.outputs.Addresses) > 0 {
		addresses = o.outputs.Addresses
	}
	now := a.clock.Now()
	schedule := lifecycle.NewSchedule(o.machine, &o.status, addresses, a.interval).WithLook(a.looksAt(o))
	t := lifecycle.Target{Now: now, Due: schedule.Due(o.facts, now)}
	if s := o.choice.State; s != nil {
		t.Fingerprint, t.Lookup, t.Settle = s.Fingerprint, len(s.Module.LookupFiles()) > 0, s.Module.Settle()
		t.Adopt = len(s.Module.AdoptFiles()) > 0
	}
	return t
}

// readProviderStatus decodes the provider status. One that cannot be read is replaced: it is output.
func readProviderStatus(machine *machinev1beta1.Machine) v1alpha1.TerraformMachineProviderStatus {
	var status v1alpha1.TerraformMachineProviderStatus
	if machine.Status.ProviderStatus == nil || json.Unmarshal(machine.Status.ProviderStatus.Raw, &status) != nil {
		return v1alpha1.TerraformMachineProviderStatus{}
	}
	return status
}
