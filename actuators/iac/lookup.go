package iac

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/machine-iac/machine-iac-operator/actuators/reporting"
	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// lookup searches for an instance that the state may lack, before a create, an update or a destroy.
type lookup struct{ *task }

// find imports what an abandoned run may have created. It returns false if nothing exists, and an
// *undecidedError while it is too early to tell. An instance of another owner blocks a create; a
// destroy leaves it alone.
func (t lookup) find(ctx context.Context) (found bool, err error) {
	err = t.inWorkspace(ctx, t.search(), func(workspace runner.Workspace) error {
		report, err := workspace.Plan(ctx)
		if err != nil {
			if why := t.wanted.Incomplete; why != nil && failure.ClassOf(err) == failure.InvalidConfiguration {
				return why // the module requires missing inputs
			}
			if !runner.IsNotFound(err, t.wanted.Module, t.search()) {
				return t.lookupFailed(err)
			}
			return t.notFoundCounts()
		}
		if report.Planned.Import > 0 {
			err := t.checkOwner(ctx, workspace)
			if _, other := errors.AsType[*module.ForeignError](err); other && t.decision.Operation == runs.Destroy {
				return t.notFoundCounts()
			}
			if err != nil {
				return err
			}
		}
		found, err = t.importFound(ctx, workspace, report)
		return err
	})
	if t.lookedUp {
		t.actuator.searched.Store(t.uid, true)
	}
	return found, err
}

// lookupFailed says what the run was doing, and how to go on without the lookup: credentials that
// were never valid may never become so.
func (t lookup) lookupFailed(err error) error {
	run := t.facts.AbandonedRun()
	if run == "" || t.facts.Adopted() {
		return err
	}
	return reporting.LookupFailed(t.machine, run, err)
}

// importFound applies the plan of a lookup. If the lookup found no instance, the plan creates one.
// A create may apply it once the "not found" is reliable. A destroy applies it if a resource
// attached to an instance was found, since nothing else brings that into the state.
func (t lookup) importFound(ctx context.Context, workspace runner.Workspace,
	report *engine.Report) (found bool, err error) {
	instance := slices.ContainsFunc(report.Changes, func(c engine.Change) bool { return c.Import && c.Instance() })
	if why := t.wanted.Incomplete; why != nil && report.Planned.Import > 0 && lifecycle.CheckAdoption(report, nil) != "" {
		return false, why // a part of the instance is missing and would be created without user data
	}
	if !instance {
		if err := t.notFoundCounts(); err != nil {
			return false, err
		}
		operation := t.decision.Operation
		if operation == runs.Update || t.wanted.Incomplete != nil && operation != runs.Destroy ||
			operation == runs.Destroy && report.Planned.Import == 0 {
			return false, nil
		}
	}
	err = t.apply(ctx, workspace, report)
	if err == nil && instance {
		t.lookedUp, t.imported = true, true
		t.actuator.metrics.Found()
	}
	return err == nil, err
}

// reportFound sends the event of a run whose lookup found the instance, and reports whether it did.
func (t *task) reportFound() bool {
	switch {
	case !t.imported:
		return false
	case !t.facts.Stored && t.facts.Witness != nil:
		reporting.StateLost(t.machine).Send(t.actuator.recorder)
	default:
		reporting.Succeeded(t.decision.Operation, t.machine,
			"Found the instance of run "+t.intent.Abandoned+" and imported it into the state").Send(t.actuator.recorder)
	}
	return true
}

// notFoundCounts returns nil once a "not found" is reliable, because the abandoned run's requests
// have had time to take effect.
func (t lookup) notFoundCounts() error {
	until := t.intent.Died.Add(t.wanted.Module.Settle())
	if t.intent.Abandoned == "" || !t.actuator.clock.Now().Before(until) {
		t.lookedUp = true
		return nil
	}
	return &undecidedError{until: until,
		text: fmt.Sprintf("the lookup found nothing from run %s, whose requests may still take effect", t.intent.Abandoned)}
}

// checkOwner refuses a plan that would import another owner's object. A lookup by name may find
// one, and a destroy would then remove it.
func (t lookup) checkOwner(ctx context.Context, workspace runner.Workspace) error {
	planned, err := workspace.Planned(ctx)
	if err != nil {
		return err
	}
	if t.search() == engine.SearchAdopt {
		_, err := t.proveIdentity(planned)
		return err
	}
	known, err := t.facts.Objects()
	if err != nil {
		return err
	}
	uid := string(t.identityUID())
	if err := t.wanted.Module.Identities().Check(planned.Imported, known, uid); err != nil {
		return fmt.Errorf("an instance of another owner is in the way: %w, but this Machine has the UID %s; leave that "+
			"instance to its owner, delete this Machine, and create one with another name", err, uid)
	}
	return nil
}

// search returns the search that finds the Machine's instance if the state lacks it.
func (t *task) search() engine.Search {
	if t.decision.Adopt || t.facts.Adopted() {
		return engine.SearchAdopt
	}
	return engine.SearchLookup
}

// undecidedError says that nothing was found where an instance may exist, and that it is too early
// to rely on that.
type undecidedError struct {
	until time.Time
	text  string
}

// Error implements error.
func (e *undecidedError) Error() string {
	return fmt.Sprintf("%s; next lookup at %s", e.text, e.until.UTC().Format(time.RFC3339))
}
