package iac

import (
	"context"
	"errors"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/actuators/recovery"
	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/internal/desired"
	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// Execute implements runs.Task.
func (t *task) Execute(ctx context.Context) error {
	defer t.leave()
	return t.alone(t.execute(ctx))
}

func (t *task) execute(ctx context.Context) error {
	switch {
	case t.decision.Release:
		return nil // Settle forgets the state
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

// create makes the instance. From an empty state the engine can do nothing else, so that is one process; else the plan is read.
func (t *task) create(ctx context.Context) error {
	if t.decision.Lookup {
		if found, err := t.lookUp(ctx); found || err != nil {
			return err
		}
	}
	if t.wanted.Incomplete != nil {
		return t.wanted.Incomplete
	}
	return t.inWorkspace(ctx, engine.SearchNone, func(workspace runner.Workspace) error {
		if t.facts.HasResources() {
			return t.planAndApply(ctx, workspace)
		}
		t.touched = true
		report, err := workspace.Apply(ctx)
		t.noteApplied(report)
		return err
	})
}

// update brings an instance to its providerSpec, in place or not at all. One whose state is missing is looked up first.
func (t *task) update(ctx context.Context) error {
	if t.decision.Lookup {
		found, err := t.lookUp(ctx)
		if err == nil && !found {
			return t.instanceMissing("the instance is gone: its state is missing, and the lookup finds none")
		}
		return err
	}
	return t.inWorkspace(ctx, engine.SearchNone, func(workspace runner.Workspace) error { return t.planAndApply(ctx, workspace) })
}

// instanceMissing notes that the instance is gone.
func (t *task) instanceMissing(summary string) error {
	t.found = t.checkedNow(record.DriftCheck{Result: record.DriftMissing, Summary: summary})
	return actuators.UpdateFailed("%s", summary)
}

// planAndApply plans, checks the plan, and applies it where that is allowed.
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

// apply checks a plan, and applies it where that is allowed.
func (t *task) apply(ctx context.Context, workspace runner.Workspace, report *engine.Report) error {
	checked := lifecycle.CheckPlan(t.decision.Operation, report, t.facts.Provisioned)
	switch {
	case checked.Missing != "":
		return t.instanceMissing(checked.Missing) // other differences are what the change asks for, and no drift
	case checked.Refused != "":
		return actuators.UnsupportedChange("%s", checked.Refused)
	case !checked.Changes:
		return nil
	}
	if t.changesModule {
		// From here on the new module knows what there may be, and the old one does not.
		if err := t.session.Attach(ctx, t.attachments()); err != nil {
			return err
		}
		if err := t.session.SetMeta(ctx, record.NewPatch().SetModule(t.wanted.Module.Reference()).MetaPatch); err != nil {
			return err
		}
	}
	t.touched = true
	applied, err := workspace.ApplyPlan(ctx)
	t.noteApplied(applied)
	if err == nil {
		t.found = t.checkedNow(record.DriftCheck{Result: record.DriftNone})
	}
	return err
}

// checkedNow returns a check with the present time.
func (t *task) checkedNow(found record.DriftCheck) *record.DriftCheck {
	found.At, found.Request = t.actuator.clock.Now().UTC(), t.facts.CheckRequest
	return &found
}

// noteApplied notes whether the run has changed infrastructure.
func (t *task) noteApplied(report *engine.Report) {
	if len(report.Applied) > 0 {
		t.changed = true
	}
}

// trackProgress keeps which resources the engine is making.
func (t *task) trackProgress(event engine.Event) {
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

// inWorkspace opens a workspace for the engine, and closes it.
func (t *task) inWorkspace(ctx context.Context, search engine.Search, use func(runner.Workspace) error) (err error) {
	// A process that was stopped since it took the lock may lead no more.
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
	spec, err := t.runSpec(around, search)
	if err != nil {
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
		unsaved, readErr := workspace.Unsaved()
		if unsaved {
			t.unsaved = workspace
			return
		}
		err = errors.Join(err, readErr, workspace.Close())
	}()
	return use(workspace)
}

func (t *task) runSpec(around desired.Environment, search engine.Search) (runner.RunSpec, error) {
	variables := t.wanted.Inputs.Variables
	if search == engine.SearchAdopt {
		var err error
		if variables, err = t.withAdopt(variables); err != nil {
			return runner.RunSpec{}, err
		}
	}
	environment, sensitive := around.With(t.wanted.Inputs.Environment, t.wanted.Inputs.Sensitive)
	return runner.RunSpec{
		ID: t.id,
		Identity: recovery.Identity{
			Namespace: t.key.Namespace, Name: t.key.Name, UID: string(t.uid), Owner: t.actuator.owner, Run: t.id,
		},
		Module:          t.wanted.Module,
		Session:         t.session,
		Lineage:         string(t.identityUID()),
		Variables:       variables,
		Environment:     environment,
		Credentials:     t.wanted.CredentialsSecret,
		InitEnvironment: around.Variables,
		Files:           t.wanted.Inputs.Files,
		Sensitive:       sensitive,
		Search:          search,
		NotFound:        search == engine.SearchNone && t.decision.Lookup && t.lookedUp && !t.imported,
		Waits:           func(what string) { t.actuator.pool.Waits(t.poolUID, what) },
		Progress:        t.trackProgress,
		Output:          t.transcript.Add,
		Withheld:        t.withheld.Add,
	}, nil
}
