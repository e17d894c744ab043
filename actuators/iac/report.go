package iac

import (
	"errors"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/actuators/reporting"
	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// report sends an outcome's events and returns its typed error.
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
		err := reporting.AsMachineError(t.decision.Operation, t.requeueAfter(outcome))
		if awaitsProvider(outcome) {
			return runs.RetrySoon(err)
		}
		return err
	}
	t.reportSuccess()
	return nil
}

// reportSuccess sends the event of a successful run.
func (t *task) reportSuccess() {
	recorder := t.actuator.recorder
	switch {
	case t.decision.Adopt && t.decision.Operation == runs.Update:
		reporting.Adopted(t.machine, t.adoption != nil && len(t.adoption.Changes) > 0).Send(recorder)
	case t.imported && !t.facts.Stored && t.facts.Witness != nil:
		reporting.StateLost(t.machine).Send(recorder)
	case t.imported:
		reporting.Succeeded(t.decision.Operation, t.machine,
			"Found the instance of run "+t.intent.Abandoned+" and imported it into the state").Send(recorder)
	case t.decision.Operation == runs.Create:
		reporting.Succeeded(runs.Create, t.machine, "Created the instance with module "+t.wanted.Module.Name()).Send(recorder)
	case t.decision.Repair && t.changed:
		reporting.DriftRepaired(t.machine).Send(recorder)
	case t.changesModule:
		reporting.Succeeded(runs.Update, t.machine,
			"Brought the instance to module "+t.wanted.Module.Reference()).Send(recorder)
	case t.changed:
		reporting.Succeeded(runs.Update, t.machine, "Changed the instance in place").Send(recorder)
	}
}

// reportLeftBehind sends the event about what remains after the instance was destroyed.
func (t *task) reportLeftBehind() {
	if t.facts.State == nil {
		return
	}
	if had, err := t.facts.Outputs(); err == nil && len(had.Outlives) > 0 {
		reporting.LeftBehind(t.machine, had.Outlives).Send(t.actuator.recorder)
	}
}

// requeueAfter converts an undecided outcome to an error with a retry time.
func (t *task) requeueAfter(outcome error) error {
	open, ok := errors.AsType[*undecidedError](outcome)
	if !ok {
		return outcome
	}
	return actuators.InProgress(max(minRequeue, open.until.Sub(t.actuator.clock.Now())), "%s", open.Error())
}

// reportDrift counts a drift check and sends its event.
func (t *task) reportDrift(outcome error) {
	ignored := lifecycle.DriftOf(t.machine).Policy == v1alpha1.DriftIgnore // the check had another purpose
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

// awaitsProvider reports whether a run failed before it started an engine, or because the provider
// mirror lacks a provider. Someone may add it at any time. Any other initialization failure, such
// as an error in the module, costs a process per attempt and gets the full backoff.
func awaitsProvider(err error) bool {
	failed, ok := errors.AsType[*failure.Error](err)
	if !ok || failed.Op != failure.OpInit {
		return false
	}
	return failed.Class == failure.ProviderNotInstalled || failed.Class == failure.Unknown && len(failed.Diagnostics) == 0
}
