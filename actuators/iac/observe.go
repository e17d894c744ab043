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

// observation is what a verb has observed of a Machine, and what it will publish.
type observation struct {
	asked   runs.Operation
	machine *machinev1beta1.Machine
	facts   *lifecycle.Facts
	// status is the decoded provider status; before is its previous value.
	status, before v1alpha1.TerraformMachineProviderStatus
	// outputs are the outputs of an instance to be updated, or nil.
	outputs *lifecycle.Outputs
	// waiting is the error while an address is pending, which blocks other decisions; nil
	// otherwise.
	waiting error
	// claims reports whether the Machine takes addresses from pools.
	claims bool
	// choice is the desired state; choiceErr says why there is none.
	choice    desired.Choice
	choiceErr error
}

func newObservation(asked runs.Operation, machine *machinev1beta1.Machine, f *lifecycle.Facts) *observation {
	o := &observation{asked: asked, machine: machine, facts: f, status: readProviderStatus(machine)}
	o.before = o.status
	o.before.Conditions = slices.Clone(o.status.Conditions)
	return o
}

// observe reads the facts about a Machine and its desired state.
func (a *Actuator) observe(ctx context.Context, machine *machinev1beta1.Machine,
	asked runs.Operation) (*observation, error) {
	f, err := a.facts(ctx, machine)
	if err != nil {
		return nil, err
	}
	o := newObservation(asked, machine, f)
	if asked == runs.Update && f.State != nil && !f.Unrecorded() && !f.Unproven() {
		if o.outputs, err = f.Outputs(); err != nil {
			return nil, actuators.UpdateFailed("%s", err.Error())
		}
		o.status.Run = nil // set again if a run is in progress
	}
	if o.waiting = a.claimAddresses(ctx, o); o.waiting == nil {
		o.choice, o.choiceErr = a.choose(ctx, o.machine, f, asked)
	}
	return o, nil
}

// facts reads the facts about a Machine. It reads the run first: if the run ended in between, its
// outcome would be paired with a state from before its end.
func (a *Actuator) facts(ctx context.Context, machine *machinev1beta1.Machine) (*lifecycle.Facts, error) {
	if f, handed := actuators.Handed[*lifecycle.Facts](ctx, machine.UID); handed {
		return f, nil
	}
	status, known := a.pool.Status(runs.Key(machine.UID))
	f, err := a.desired.Facts(ctx, machine)
	if err != nil {
		return nil, reporting.Unreadable(err)
	}
	if known {
		f.Run = &status
	}
	return f, nil
}

// choose returns a Machine's desired state for an operation. Its errors are Machine API errors.
func (a *Actuator) choose(ctx context.Context, machine *machinev1beta1.Machine, f *lifecycle.Facts,
	operation runs.Operation) (desired.Choice, error) {
	c, err := a.desired.Choose(ctx, machine, f, operation)
	if failed := reporting.OfDesired(operation, err); failed != nil {
		return c, failed
	}
	return c, err
}

// target returns the target for an observation's facts at this time.
func (a *Actuator) target(o *observation) lifecycle.Target {
	addresses := o.machine.Status.Addresses
	if o.outputs != nil && len(o.outputs.Addresses) > 0 {
		addresses = o.outputs.Addresses
	}
	now := a.clock.Now()
	schedule := lifecycle.NewSchedule(o.machine, &o.status, addresses, a.interval).WithLook(a.looksAt(o))
	t := lifecycle.Target{Now: now, Due: schedule.Due(o.facts, now)}
	_, searched := a.searched.Load(o.machine.UID)
	t.Search = !searched && o.machine.CreationTimestamp.Time.Before(a.leader.Began())
	if s := o.choice.State; s != nil {
		t.Fingerprint, t.Settle = s.Fingerprint, s.Module.Settle()
		t.Lookup = len(s.Module.LookupFiles()) > 0 && s.Module.Identifies()
		t.Adopt = len(s.Module.AdoptFiles()) > 0
	}
	return t
}

// readProviderStatus decodes the provider status. An unreadable one is replaced, since it is only
// output.
func readProviderStatus(machine *machinev1beta1.Machine) v1alpha1.TerraformMachineProviderStatus {
	var status v1alpha1.TerraformMachineProviderStatus
	if machine.Status.ProviderStatus == nil || json.Unmarshal(machine.Status.ProviderStatus.Raw, &status) != nil {
		return v1alpha1.TerraformMachineProviderStatus{}
	}
	return status
}
