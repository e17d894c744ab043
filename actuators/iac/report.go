package iac

import (
	"errors"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/actuators/reporting"
	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// report sends the events of an outcome and returns its typed error.
func (t *task) report(outcome error) error {
	_, open := errors.AsType[*undecidedError](outcome)
	quiet := open || runs.Interrupted(outcome)
	if t.decision.Operation == runs.Drift && !quiet {
		t.reportDrift(outcome)
	}
	if t.decision.Repair && !quiet {
		t.actuator.metrics.Repaired(engineOf(t.wanted), outcome, t.changed)
	}
	if outcome != nil {
		if !quiet {
			reporting.Failure(t.actuator.recorder, t.actuator.metrics, t.decision.Operation, t.machine, outcome)
		}
		return reporting.AsMachineError(t.decision.Operation, t.requeueAfter(outcome))
	}
	t.reportSuccess()
	return nil
}

// reportSuccess sends the event of what a run has done.
func (t *task) reportSuccess() {
	recorder := t.actuator.recorder
	switch {
	case t.decision.Adopt && t.decision.Operation == runs.Update:
		reporting.Adopted(t.machine, t.adoption != nil && len(t.adoption.Changes) > 0).Send(recorder)
	case t.imported:
		reporting.Succeeded(t.decision.Operation, t.machine, "Found the instance of run "+t.intent.Abandoned+" and took it into the state").Send(recorder)
	case t.decision.Operation == runs.Create:
		reporting.Succeeded(runs.Create, t.machine, "Created the instance with module "+t.wanted.Module.Name()).Send(recorder)
	case t.decision.Repair && t.changed:
		reporting.DriftRepaired(t.machine).Send(recorder)
	case t.changesModule:
		reporting.Succeeded(runs.Update, t.machine, "Brought the instance to module "+t.wanted.Module.Reference()).Send(recorder)
	case t.changed:
		reporting.Succeeded(runs.Update, t.machine, "Changed the instance in place").Send(recorder)
	}
}

// reportLeftBehind sends the event of what stays after the instance was destroyed.
func (t *task) reportLeftBehind() {
	if t.facts.State == nil {
		return
	}
	if had, err := t.facts.Outputs(); err == nil && len(had.Outlives) > 0 {
		reporting.LeftBehind(t.machine, had.Outlives).Send(t.actuator.recorder)
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
	if t.found != nil && (t.found.Result == record.DriftMissing || t.found.Result == record.DriftChanged && !ignored) {
		reporting.DriftFound(t.machine, *t.found).Send(t.actuator.recorder)
	}
	found := t.found
	if outcome != nil {
		found = nil
	}
	if t.found != nil || outcome != nil {
		t.actuator.metrics.Checked(engineOf(t.wanted), found)
	}
}
