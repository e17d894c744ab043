package iac

import (
	"context"
	"errors"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/internal/desired"
	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// Execute implements runs.Task.
func (t *task) Execute(ctx context.Context) error {
	defer t.leave()
	return t.alone(t.hinted(t.execute(ctx)))
}

// hinted adds the module's hint to an engine's error. It wraps the error, because the tasks of a
// batch share it.
func (t *task) hinted(err error) error {
	failed, ok := errors.AsType[*failure.Error](err)
	if !ok || failed.Hint != "" || t.wanted == nil {
		return err
	}
	return failure.WithHint(err, failure.HintOf(failed.Diagnostics, t.wanted.Module.Hint))
}

func (t *task) execute(ctx context.Context) error {
	switch {
	case t.decision.Release:
		return nil // Settle discards the state
	case t.decision.Adopt:
		return t.adopt(ctx)
	}
	switch t.decision.Operation {
	case runs.Create:
		return t.create(ctx)
	case runs.Update:
		return t.update(ctx)
	case runs.Drift:
		return t.checkDrift(ctx)
	default:
		return t.destroy(ctx)
	}
}

// create creates the instance. With an empty state the plan can do nothing else, so one process
// plans and applies. Otherwise the plan is checked first.
func (t *task) create(ctx context.Context) error {
	if t.facts.HalfMade() {
		return t.finish(ctx)
	}
	if t.decision.Lookup {
		switch found, err := t.lookUp(ctx); {
		case err != nil:
			return err
		case found:
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

// update brings an instance to its providerSpec, in place or not at all. If its state is missing,
// it is looked up first.
func (t *task) update(ctx context.Context) error {
	if t.decision.Lookup {
		found, err := t.lookUp(ctx)
		if err == nil && !found {
			return t.instanceMissing("the instance is gone: its state is missing, and the lookup finds no instance")
		}
		return err
	}
	if t.beside && t.wanted.ModuleMissing != "" {
		return actuators.UnsupportedChange("%s", t.wanted.ModuleMissing) // another module may expect a different instance
	}
	return t.bring(ctx)
}

// bring brings what the state has to the providerSpec, or replaces what an interrupted create left.
func (t *task) bring(ctx context.Context) error {
	err := t.inWorkspace(ctx, engine.SearchNone,
		func(workspace runner.Workspace) error { return t.planAndApply(ctx, workspace) })
	if err != nil {
		return err
	}
	return t.replaceBroken(ctx)
}

// instanceMissing records that the instance is gone.
func (t *task) instanceMissing(summary string) error {
	t.found = t.checkedNow(record.DriftCheck{Result: record.DriftMissing, Summary: summary})
	return actuators.UpdateFailed("%s", summary)
}

// planAndApply plans, checks the plan, and applies it if allowed.
func (t *task) planAndApply(ctx context.Context, workspace runner.Workspace) error {
	report, err := workspace.Plan(ctx)
	if refused := lifecycle.RefusedByModule(err); refused != "" && t.decision.Operation == runs.Update {
		return actuators.UnsupportedChange("%s", refused)
	}
	if err != nil {
		return err
	}
	return t.apply(ctx, workspace, report)
}

// apply checks a plan and applies it if allowed.
func (t *task) apply(ctx context.Context, workspace runner.Workspace, report *engine.Report) error {
	checked := lifecycle.CheckPlan(t.decision.Operation, report, t.facts.Provisioned)
	switch {
	case checked.Missing != "":
		return t.instanceMissing(checked.Missing) // other differences are requested changes, not drift
	case checked.Refused != "":
		return actuators.UnsupportedChange("%s", checked.Refused)
	case !checked.Changes:
		return nil
	}
	if err := t.refuseDisruption(ctx, workspace, report); err != nil {
		return err
	}
	if t.changesModule {
		// From here on only the new module knows all resources that may exist.
		if err := t.session.Attach(ctx, t.attachments()); err != nil {
			return err
		}
		if err := t.session.SetMeta(ctx, record.NewPatch().SetModule(t.wanted.Module.Reference()).MetaPatch); err != nil {
			return err
		}
	}
	err := t.applyWith(ctx, workspace.ApplyPlan)
	if err == nil {
		t.found = t.checkedNow(record.DriftCheck{Result: record.DriftNone})
	}
	return err
}

// refuseDisruption refuses a plan that would stop or restart a running instance, or detach a disk
// from it. A destroy may do so: the instance has been drained and ends anyway.
func (t *task) refuseDisruption(ctx context.Context, workspace runner.Workspace, report *engine.Report) error {
	effects := t.wanted.Module.Effects()
	if t.decision.Operation == runs.Destroy || !report.MayDisrupt(effects) {
		return nil
	}
	planned, err := workspace.Planned(ctx)
	if err != nil {
		return err
	}
	switch disruption := report.Disruption(effects, planned.Changed); {
	case disruption == "":
		return nil
	case t.decision.Lookup:
		return errors.New("found an instance and left it unchanged: " + disruption +
			"; change the providerSpec to match the instance, or delete the Machine")
	default:
		return actuators.UnsupportedChange("%s", lifecycle.CheckUpdate(report,
			[]string{disruption + "; create a new Machine instead, or revert the change"}, true).Refused)
	}
}

// applyWith lets the engine create or change the instance. A stopping manager waits for it, because
// providers wait for what they create, and an interrupted create leaves a half-made instance.
func (t *task) applyWith(ctx context.Context, apply func(context.Context) (*engine.Report, error)) error {
	t.touched = true
	t.applies.Store(true)
	defer t.applies.Store(false)
	report, err := apply(ctx)
	t.noteApplied(report)
	return err
}

// Finishing implements runs.Finisher.
func (t *task) Finishing() bool { return t.applies.Load() }

// checkedNow returns a check with the current time.
func (t *task) checkedNow(found record.DriftCheck) *record.DriftCheck {
	found.At, found.Request = t.actuator.clock.Now().UTC(), t.facts.CheckRequest
	return &found
}

// noteApplied records whether the run has changed infrastructure.
func (t *task) noteApplied(report *engine.Report) {
	if len(report.Applied) > 0 {
		t.changed = true
	}
}

// trackProgress tracks the resources that the engine is creating. One that takes long, other than
// reading it, leaves the engine waiting.
func (t *task) trackProgress(event engine.Event) {
	if event.Kind == engine.EventProgress && event.Action != engine.ActionRead {
		t.actuator.pool.Idles(t.poolUID)
	}
	if event.Action != engine.ActionCreate {
		return
	}
	if event.Kind == engine.EventCompleted {
		delete(t.making, event.Address)
		return
	}
	if t.making == nil {
		t.making = map[string]bool{}
	}
	t.making[event.Address] = true
}

// inWorkspace opens a workspace for the engine, and closes it after use.
func (t *task) inWorkspace(ctx context.Context, search engine.Search, use func(runner.Workspace) error) (err error) {
	// A process that was suspended since it took the lock may no longer lead.
	if err := t.actuator.leader.Confirm(ctx); err != nil {
		return err
	}
	with, err := t.runner(ctx)
	if err != nil {
		return err
	}
	around, err := t.actuator.desired.Environment(ctx, t.wanted.Module)
	if err != nil {
		return err
	}
	t.markPhase(search)
	spec, err := t.spec(around, search)
	if err != nil {
		return err
	}
	if err := t.publishToken(ctx, search); err != nil {
		return err
	}
	open := with.Open
	if t.share != nil {
		open = t.share.Open
	}
	workspace, err := open(ctx, spec)
	if err != nil {
		return err
	}
	defer func() {
		if workspace.Unsaved() {
			t.unsaved = workspace
			return
		}
		err = errors.Join(err, workspace.Close())
	}()
	return use(runner.Watched(workspace, func(report *engine.Report) {
		t.providers.Note(report.Providers, t.facts.Record.Providers, t.machine, t.actuator.recorder)
	}))
}

// publishToken makes the bootstrap token in the user data of an instance that is about to be
// created.
func (t *task) publishToken(ctx context.Context, search engine.Search) error {
	if search != engine.SearchNone || t.decision.Operation != runs.Create || !t.wanted.Bootstraps ||
		t.machine.Status.NodeRef != nil {
		return nil
	}
	return t.actuator.bootstrap.Publish(ctx, t.key, t.identityUID())
}

// spec describes the run for an engine that works on the Machine's state.
func (t *task) spec(around desired.Environment, search engine.Search) (runner.RunSpec, error) {
	spec, err := t.run.spec(around, search)
	spec.Session, spec.Progress = t.session, t.trackProgress
	spec.Destroys = search == engine.SearchNone && t.decision.Operation == runs.Destroy
	spec.NotFound = search == engine.SearchNone && t.decision.Lookup && t.lookedUp && !t.imported
	return spec, err
}
