package iac

import (
	"context"
	"fmt"
	"slices"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/actuators/reporting"
	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
)

// destroy removes the instance and all that was made with it. A destroy can do nothing else, so its plan is not read. What it did is: an
// instance that was not there is looked for a second time before its state is given up.
func (t *task) destroy(ctx context.Context) error {
	if t.wanted == nil {
		return nil // nothing was made, so nothing needs to be known of it
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
	return t.inWorkspace(ctx, engine.SearchNone, func(workspace runner.Workspace) error {
		t.touched = true
		report, err := workspace.Destroy(ctx)
		t.noteApplied(report)
		if err != nil || !t.facts.HasInstance() && !t.imported || destroyedInstance(report) {
			return err
		}
		return t.instanceNotFound(ctx, before.Raw)
	})
}

// destroyedInstance reports whether a destroy has removed the instance, which it found.
func destroyedInstance(report *engine.Report) bool {
	return slices.ContainsFunc(report.Applied, func(a engine.Applied) bool { return a.Instance() && a.Action == engine.ActionDelete })
}

// instanceNotFound handles an instance that a destroy did not find. The engine has dropped it from the state by now; the state from before is
// put back until a second look, after the time that the module says, has seen the same.
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
		return actuators.Uncertain(reporting.ProgressInterval, "PlaceUnproven", "%s, but it is not proven that it was looked for in the place that it was made in (%s); look for the "+
			"instance, remove it if it is there, and then set the annotation %s: %s on the Machine", summary, unproven, record.NoInstanceAnnotation, t.uid)
	}
	return &undecidedError{until: now.Add(again), text: summary}
}

// placeUnproven says what of the place is not known to be where the instance was made; empty where it all is, or a person has looked.
func (t *task) placeUnproven() string {
	made := t.facts.Record.Place
	if len(made) == 0 || made.Equal(t.wanted.Place) || t.facts.Confirmed == string(t.uid) {
		return ""
	}
	return made.Diff(t.wanted.Place)
}

// compare returns what a plan says of the instance, with the names of the attributes that differ where the engine can say.
func (t *task) compare(ctx context.Context, workspace runner.Workspace, report *engine.Report) record.DriftCheck {
	found := lifecycle.CompareInstance(report, nil)
	if found.Result != record.DriftChanged {
		return found
	}
	planned, err := workspace.Planned(ctx)
	if err != nil {
		t.actuator.logger.V(1).Info("The attributes that drift has changed are not known", "Machine", t.key.String(), "error", err.Error())
		return found
	}
	return lifecycle.CompareInstance(report, planned.Changed)
}

// checkDrift compares the instance with its state. Outputs that changed by themselves are taken over: no resource is touched.
func (t *task) checkDrift(ctx context.Context) error {
	search := engine.SearchNone
	if t.decision.Lookup {
		search = t.search()
	}
	return t.inWorkspace(ctx, search, func(workspace runner.Workspace) error {
		report, err := workspace.Plan(ctx)
		if t.decision.Lookup && runner.IsNotFound(err, t.wanted.Module, search) {
			// The lookup has nothing to say of an instance that the state has; the next check looks at it.
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
