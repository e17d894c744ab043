package iac

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/actuators/reporting"
	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// create makes the instance, or resumes an interrupted create.
type create struct{ change }

// execute creates the instance. With an empty state the plan can do nothing else, so one process
// plans and applies. Otherwise the plan is checked first.
func (t create) execute(ctx context.Context) error {
	if t.facts.HalfMade() {
		return t.finish(ctx)
	}
	if t.decision.Lookup {
		found, err := lookup{t.task}.find(ctx)
		if err != nil {
			return err
		}
		if found {
			return t.replaceBroken(ctx)
		}
	}
	if t.wanted.Incomplete != nil {
		return t.wanted.Incomplete
	}
	if t.facts.HasResources() {
		return t.bring(ctx)
	}
	return t.inWorkspace(ctx, engine.SearchNone,
		func(workspace runner.Workspace) error { return t.applyWith(ctx, workspace.Apply) })
}

// settle implements operation.
func (t create) settle(ctx context.Context, outcome error) error {
	p := t.patchFor(outcome)
	if outcome == nil && t.decision.Lookup && !t.imported {
		at := t.actuator.clock.Now().Add(t.wanted.Module.Settle())
		p.SetSecondLook(&at)
	}
	if err := t.conclude(ctx, p, outcome); err != nil || t.reportFound() {
		return err
	}
	reporting.Succeeded(runs.Create, t.machine, "Created the instance with module "+t.wanted.Module.Name()).
		Send(t.actuator.recorder)
	return nil
}

// finish resumes an interrupted create whose instance the engine would replace. It untaints the
// instance, plans and applies, and taints it again on failure. A useless instance is destroyed with
// everything that belongs to it, and the next run creates another.
func (t change) finish(ctx context.Context) (err error) {
	if err := t.setTainted(ctx, false); err != nil {
		return err
	}
	destroyed := false
	defer func() {
		if err != nil && !destroyed && t.unsaved == nil { // an unsaved state has the same serial
			err = errors.Join(err, t.setTainted(context.WithoutCancel(ctx), true))
		}
	}()
	return t.inWorkspace(ctx, engine.SearchNone, func(workspace runner.Workspace) error {
		why, err := t.complete(ctx, workspace)
		if why == "" || err != nil {
			return err
		}
		if t.wanted.Incomplete != nil {
			return t.wanted.Incomplete // a replacement could not be created
		}
		t.touched = true
		report, err := workspace.Destroy(ctx)
		t.noteApplied(report)
		if err != nil {
			return err
		}
		destroyed = true
		t.found = t.checkedNow(record.DriftCheck{Result: record.DriftNone})
		return actuators.CreateFailed("the create was interrupted, and %s: destroyed the instance; creating another", why)
	})
}

// freshCreate is how long ago a create may have begun for its instance to count as half-made.
const freshCreate = time.Hour

// replaceBroken treats an instance that an interrupted create left as half-made if the
// infrastructure calls it broken. The taint outlasts a destroy that fails. After a restore of etcd,
// an instance of an earlier create may have run and been stopped since: it stays as it is.
func (t change) replaceBroken(ctx context.Context) error {
	w := t.facts.Witness
	if t.facts.HadInstance() || w == nil || w.Unsigned || t.actuator.clock.Since(w.Since) > freshCreate {
		return nil
	}
	if why, err := t.broken(ctx); why == "" || err != nil {
		return err
	}
	if err := t.setTainted(ctx, true); err != nil {
		return err
	}
	return t.finish(ctx)
}

// setTainted sets whether the instance in the stored state is tainted.
func (t change) setTainted(ctx context.Context, tainted bool) error {
	snapshot, err := t.session.Snapshot(ctx)
	if err != nil {
		return err
	}
	changed, err := lifecycle.SetTainted(snapshot.Raw, tainted)
	if err != nil {
		return err
	}
	return t.session.Put(ctx, changed)
}

// complete applies the plan of a half-made instance, or returns why the instance is useless.
func (t change) complete(ctx context.Context, workspace runner.Workspace) (useless string, err error) {
	report, err := workspace.Plan(ctx)
	if why := t.wanted.Incomplete; why != nil && failure.ClassOf(err) == failure.InvalidConfiguration {
		return "", why // the module requires missing inputs
	}
	if err != nil {
		return "", err
	}
	if report.InstanceGone() {
		return t.goneForGood()
	}
	if refused := lifecycle.CheckPlan(runs.Create, report, t.facts.Provisioned).Refused; refused != "" {
		return refused, nil
	}
	if err := t.apply(ctx, workspace, report); err != nil {
		return "", err
	}
	return t.broken(ctx)
}

// goneForGood returns "it is gone" once a second look has not found the instance either.
func (t change) goneForGood() (useless string, err error) {
	now, again := t.actuator.clock.Now(), lifecycle.SecondLookAfter(t.wanted.Module.Settle())
	if t.facts.Missing() && !now.Before(t.facts.Record.Check.At.Add(again)) {
		return "it is gone", nil
	}
	summary := "the instance of an interrupted create was not found"
	t.found = t.checkedNow(record.DriftCheck{Result: record.DriftMissing, Summary: summary})
	return "", &undecidedError{until: now.Add(again), text: summary}
}

// broken returns why the infrastructure calls the instance broken, according to the module's
// output, or "".
func (t change) broken(ctx context.Context) (why string, err error) {
	snapshot, err := t.session.Snapshot(ctx)
	if err != nil {
		return "", err
	}
	parsed, err := snapshot.State()
	if err != nil {
		return "", err
	}
	outputs, err := (&lifecycle.Facts{State: parsed}).Outputs()
	if err != nil || !slices.Contains(t.wanted.Module.Spec().BrokenStates, outputs.InstanceState) {
		return "", err
	}
	return fmt.Sprintf("its state is %s", outputs.InstanceState), nil
}
