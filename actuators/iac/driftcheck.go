package iac

import (
	"context"
	"errors"

	"github.com/machine-iac/machine-iac-operator/actuators/reporting"
	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
)

// driftCheck compares the instance with its state, or searches for a duplicate.
type driftCheck struct{ *task }

// execute compares the instance with its state. If the module cannot be planned because
// something that it reads is gone, execute at least checks that the instance exists.
func (t driftCheck) execute(ctx context.Context) error {
	err := t.plan(ctx)
	if _, failed := errors.AsType[*failure.Error](err); !failed || t.share != nil || ctx.Err() != nil {
		return err
	}
	gone, lookErr := t.lookAt(ctx)
	if lookErr != nil || !gone {
		return err
	}
	t.found = t.checkedNow(record.DriftCheck{
		Result:  record.DriftMissing,
		Summary: "the instance is gone: it was removed outside this operator; no other resource was compared: " + err.Error(),
	})
	return nil
}

// plan compares with a plan. Outputs that changed on their own are saved, which touches no
// resource.
func (t driftCheck) plan(ctx context.Context) error {
	search := engine.SearchNone
	if t.decision.Lookup {
		search = t.search()
	}
	return t.inWorkspace(ctx, search, func(workspace runner.Workspace) error {
		report, err := workspace.Plan(ctx)
		if t.decision.Lookup && runner.IsNotFound(err, t.wanted.Module, search) {
			return nil // it says nothing about an instance in the state; the next check covers it
		}
		if err != nil {
			return err
		}
		t.found = t.checkedNow(t.compare(ctx, workspace, report))
		if t.decision.Lookup || !report.OutputsOnly() {
			return nil
		}
		_, err = workspace.ApplyPlan(ctx)
		return err
	})
}

// compare evaluates a drift plan, and names the differing attributes if the engine can.
func (t driftCheck) compare(ctx context.Context, workspace runner.Workspace, report *engine.Report) record.DriftCheck {
	found := lifecycle.CompareInstance(report, nil)
	if found.Result != record.DriftChanged {
		return found
	}
	planned, err := workspace.Planned(ctx)
	if err != nil {
		t.actuator.logger.V(1).Info("Cannot tell which attributes have drifted", "Machine", t.key.String(), "error",
			err.Error())
		return found
	}
	return lifecycle.CompareInstance(report, planned.Changed)
}

// settle implements operation.
func (t driftCheck) settle(ctx context.Context, outcome error) error {
	if outcome == nil && !t.beside && t.facts.Inputs == nil {
		if err := t.storeInputs(ctx); err != nil {
			return err
		}
	}
	if err := t.conclude(ctx, t.patch(outcome), outcome); err != nil {
		return err
	}
	t.reportDrift(nil)
	return nil
}

// patch returns the record of the outcome.
func (t driftCheck) patch(outcome error) record.Patch {
	p := record.NewPatch()
	t.providers.Record(p, t.facts.Record.Providers, false)
	if outcome == nil && t.decision.Lookup {
		p.SetSecondLook(nil)
	}
	if outcome == nil && t.found != nil {
		p.SetCheck(*t.found)
		if t.found.Result == record.DriftNone && t.facts.Record.Repair != nil {
			p.ClearRepair()
		}
	}
	if outcome == nil && t.facts.Record.Place == nil {
		p.SetPlace(t.wanted.Place)
	}
	if outcome == nil && t.wanted.Renewed != "" {
		p.SetFingerprint(t.wanted.Renewed)
	}
	return p
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
