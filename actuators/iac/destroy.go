package iac

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/actuators/reporting"
	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

// destroy removes the instance and everything created with it. A destroy plan cannot do anything
// else, so it is not read. The report is read: an instance that was not found is looked up again
// before its state is discarded.
func (t *task) destroy(ctx context.Context) error {
	if t.wanted == nil {
		return nil // nothing was created
	}
	there := t.facts.HasResources()
	if t.decision.Lookup {
		found, err := t.lookUp(ctx)
		if err != nil {
			return err
		}
		there = there || found
	}
	if !there {
		return nil
	}
	before, err := t.session.Snapshot(ctx)
	if err != nil {
		return err
	}
	t.actuator.recovery.DropKnown(ctx, t.uid, before.Raw)
	if err := t.forgetParts(ctx, before.Raw); err != nil {
		return err
	}
	return t.inWorkspace(ctx, engine.SearchNone, func(workspace runner.Workspace) error {
		t.touched = true
		report, err := workspace.Destroy(ctx)
		t.noteApplied(report)
		if err != nil || !t.facts.HasInstance() && !t.facts.HalfMade() && !t.imported || destroyedInstance(report) {
			return err
		}
		return t.instanceNotFound(ctx, before.Raw)
	})
}

// forgetParts drops resources from the state that end with the instance. The engine would otherwise
// detach them first, from an instance whose destroy may then be refused.
func (t *task) forgetParts(ctx context.Context, raw []byte) error {
	parts := t.wanted.Module.Spec().PartOfInstance
	if len(parts) == 0 {
		return nil
	}
	left, err := statefile.Forget(raw, func(r statefile.Resource) bool {
		return slices.Contains(parts, r.Type) && r.Mode == statefile.ModeManaged
	})
	if err != nil || len(left) == len(raw) {
		return err
	}
	if _, err := t.session.Restore(ctx, left); err != nil {
		return fmt.Errorf("dropping resources from the state that end with the instance: %w", err)
	}
	return nil
}

// destroyedInstance reports whether a destroy found the instance and removed it.
func destroyedInstance(report *engine.Report) bool {
	return slices.ContainsFunc(report.Applied, func(a engine.Applied) bool {
		return a.Instance() &&
			a.Action == engine.ActionDelete
	})
}

// instanceNotFound handles a destroy that did not find the instance. The engine has already dropped
// it from the state. The earlier state is restored until a second look, after the module's
// settlement period, confirms the result.
func (t *task) instanceNotFound(ctx context.Context, before []byte) error {
	now, again := t.actuator.clock.Now(), lifecycle.SecondLookAfter(t.wanted.Module.Settle())
	first, unproven := t.facts.Record.Check, t.placeUnproven()
	if t.facts.Missing() && !now.Before(first.At.Add(again)) && unproven == "" {
		return nil
	}
	if _, err := t.session.Restore(ctx, before); err != nil {
		return fmt.Errorf("keeping the state of an instance that was not found: %w", err)
	}
	summary := "the destroy did not find the instance"
	if where := t.wanted.Place.String(); where != "" {
		summary += " in " + where
	}
	t.found = t.checkedNow(record.DriftCheck{Result: record.DriftMissing, Summary: summary})
	if unproven != "" {
		return actuators.Uncertain(reporting.ProgressInterval, "PlaceUnproven",
			"%s, but the search may have been in the wrong place (%s); look for the "+
				"instance, remove it if it exists, then set the annotation %s: %s on the Machine", summary, unproven,
			record.NoInstanceAnnotation, t.uid)
	}
	return &undecidedError{until: now.Add(again), text: summary}
}

// placeUnproven returns which parts of the place may differ from where the instance was created. It
// returns "" if none do, or if a person has checked.
func (t *task) placeUnproven() string {
	made := t.wanted.Here(t.facts.Record.Place)
	if len(made) == 0 || made.Equal(t.wanted.Place) || t.facts.Confirmed == string(t.uid) {
		return ""
	}
	return made.Diff(t.wanted.Place)
}

// compare evaluates a drift plan, and names the differing attributes if the engine can.
func (t *task) compare(ctx context.Context, workspace runner.Workspace, report *engine.Report) record.DriftCheck {
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

// checkDrift compares the instance with its state. If the module cannot be planned because
// something that it reads is gone, checkDrift at least checks that the instance exists.
func (t *task) checkDrift(ctx context.Context) error {
	err := t.planDrift(ctx)
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

// planDrift compares with a plan. Outputs that changed on their own are saved, which touches no
// resource.
func (t *task) planDrift(ctx context.Context) error {
	search := engine.SearchNone
	if t.decision.Lookup {
		search = t.search()
	}
	return t.inWorkspace(ctx, search, func(workspace runner.Workspace) error {
		report, err := workspace.Plan(ctx)
		if t.decision.Lookup && runner.IsNotFound(err, t.wanted.Module, search) {
			// The lookup says nothing about an instance in the state; the next check covers it.
			t.lookedUp = true
			return nil
		}
		if err != nil {
			return err
		}
		t.lookedUp = t.decision.Lookup
		t.found = t.checkedNow(t.compare(ctx, workspace, report))
		if t.decision.Lookup || !report.OutputsOnly() {
			return nil
		}
		_, err = workspace.ApplyPlan(ctx)
		return err
	})
}
