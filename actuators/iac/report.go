package iac

import (
	"errors"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// report sends the events of an outcome and returns its typed error.
func (t *task) report(outcome error) error {
	_, open := errors.AsType[*undecidedError](outcome)
	quiet := open || errors.Is(outcome, runs.ErrStopping)
	if t.decision.Operation == runs.Drift && !quiet {
		t.reportDrift(outcome)
	}
	if t.decision.Repair && !quiet {
		t.actuator.metrics.repaired(engineOf(t.wanted), outcome, t.changed)
	}
	if outcome != nil {
		if !quiet {
			t.actuator.reportFailure(t.decision.Operation, t.machine, outcome)
		}
		return asMachineError(t.decision.Operation, t.requeueAfter(outcome))
	}
	t.reportSuccess()
	return nil
}

// reportSuccess sends the event of what a run has done.
func (t *task) reportSuccess() {
	recorder := t.actuator.recorder
	switch {
	case t.decision.Adopt && t.decision.Operation == runs.Update:
		adopted(t.machine, t.adoption).Send(recorder)
	case t.imported:
		succeeded(t.decision.Operation, t.machine, "Found the instance of run "+t.intent.Lost+" and took it into the state").Send(recorder)
	case t.decision.Operation == runs.Create:
		succeeded(runs.Create, t.machine, "Created the instance with module "+t.wanted.Module.Name()).Send(recorder)
	case t.decision.Repair && t.changed:
		driftRepaired(t.machine).Send(recorder)
	case t.changesModule:
		succeeded(runs.Update, t.machine, "Brought the instance to module "+t.wanted.Module.Reference()).Send(recorder)
	case t.changed:
		succeeded(runs.Update, t.machine, "Changed the instance in place").Send(recorder)
	}
}

// requeueAfter makes an outcome that is undecided one that says when to try again.
func (t *task) requeueAfter(outcome error) error {
	open, ok := errors.AsType[*undecidedError](outcome)
	if !ok {
		return outcome
	}
	return actuators.InProgress(max(minRequeue, open.until.Sub(t.actuator.clock.Now())), "%s", open.Error())
}

// reportDrift sends the event of what a drift check found, and counts it.
func (t *task) reportDrift(outcome error) {
	ignored := lifecycle.DriftOf(t.machine).Policy == v1alpha1.DriftIgnore // the check was made for something else
	if t.found != nil && (t.found.Result == lifecycle.DriftMissing || t.found.Result == lifecycle.DriftChanged && !ignored) {
		driftFound(t.machine, *t.found).Send(t.actuator.recorder)
	}
	found := t.found
	if outcome != nil {
		found = nil
	}
	if t.found != nil || outcome != nil {
		t.actuator.metrics.checked(engineOf(t.wanted), found)
	}
}

// refused reports whether an outcome is a change that was not let through.
func refused(outcome error) bool {
	failed, ok := errors.AsType[*actuators.MachineError](outcome)
	return ok && failed.Reason == machinev1beta1.UnsupportedChangeMachineError
}
