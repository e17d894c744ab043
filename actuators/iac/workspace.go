package iac

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

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
	spec, err := t.spec(ctx, search)
	if err != nil {
		return err
	}
	t.markPhase(search)
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

// runner returns the runner of the run. An instance stays with the engine that created it, because
// no other can read its state.
func (t *task) runner(ctx context.Context) (runner.Runner, error) {
	wanted := t.wanted.Module.Engine()
	snapshot, err := t.session.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	made, err := engineOfState(snapshot)
	if err != nil {
		return nil, err
	}
	if cmp.Or(made, wanted) != wanted {
		return nil, actuators.UnsupportedChange("the instance was created with %s and cannot change engines, but module "+
			"%s runs on %s; "+
			"choose a module of that engine, or create a new Machine", made, t.wanted.Module.Name(), wanted)
	}
	with, known := t.actuator.runners[wanted]
	if !known {
		return nil, fmt.Errorf("module %s needs %s, which is not enabled; start the operator with --pulumi or "+
			"--engine-path, or choose another module",
			t.wanted.Module.Name(), wanted)
	}
	return with, nil
}

// engineOfState returns the engine of a state, or "" without a state.
func engineOfState(snapshot *state.Snapshot) (v1alpha1.Engine, error) {
	if snapshot.Raw == nil {
		return "", nil
	}
	parsed, err := snapshot.State()
	if err != nil {
		return "", fmt.Errorf("reading the Machine's state: %w", err)
	}
	return module.EngineOfState(parsed.Format), nil
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

// markPhase separates a lookup's output from what follows, because its errors may be expected.
func (t *task) markPhase(search engine.Search) {
	switch {
	case search != engine.SearchNone:
		t.transcript.Add("(Lookup of an instance from an earlier run)")
	case t.decision.Lookup:
		t.transcript.Add(fmt.Sprintf("(End of the lookup; %s follows)", t.decision.Operation))
	}
}

// spec describes the run for an engine that works on the Machine's state.
func (t *task) spec(ctx context.Context, search engine.Search) (runner.RunSpec, error) {
	spec, err := t.run.spec(ctx, search)
	spec.Session, spec.Progress = t.session, t.trackProgress
	spec.Destroys = search == engine.SearchNone && t.decision.Operation == runs.Destroy
	spec.NotFound = search == engine.SearchNone && t.decision.Lookup && t.lookedUp && !t.imported
	return spec, err
}

// trackProgress tracks the resources that the engine is creating. One that takes long, other than
// reading it, leaves the engine waiting.
func (t *task) trackProgress(event engine.Event) {
	if event.Kind == engine.EventProgress && event.Action != engine.ActionRead {
		t.actuator.pool.Idles(t.poolKey)
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

// instanceMissing records that the instance is gone.
func (t *task) instanceMissing(summary string) error {
	t.found = t.checkedNow(record.DriftCheck{Result: record.DriftMissing, Summary: summary})
	return actuators.UpdateFailed("%s", summary)
}

// checkedNow returns a check with the current time.
func (t *task) checkedNow(found record.DriftCheck) *record.DriftCheck {
	found.At, found.Request = t.actuator.clock.Now().UTC(), t.facts.CheckRequest
	return &found
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

// noteApplied records whether the run has changed infrastructure.
func (t *task) noteApplied(report *engine.Report) {
	if len(report.Applied) > 0 {
		t.changed = true
	}
}
