package iac

import (
	"bytes"
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
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// foreignError says that a lookup found an instance of another owner.
type foreignError struct{ address, uid string }

// Error implements error.
func (e *foreignError) Error() string {
	return fmt.Sprintf("an instance is there already that does not belong to this Machine: what the lookup found for %s nowhere has the Machine's UID %s; "+
		"remove it, or rename the Machine", e.address, e.uid)
}

// lookUp imports what an abandoned run may have made into the state. It returns false when there is nothing, and an *undecidedError while it is too
// early to say so. An instance of another owner prevents a create; a destroy leaves it alone.
func (t *task) lookUp(ctx context.Context) (found bool, err error) {
	err = t.inWorkspace(ctx, t.search(), func(workspace runner.Workspace) error {
		report, err := workspace.Plan(ctx)
		if err != nil {
			if why := t.wanted.Incomplete; why != nil && failure.ClassOf(err) == failure.InvalidConfiguration {
				return why // the module demands what it lacks
			}
			if !runner.IsNotFound(err, t.wanted.Module, t.search()) {
				return err
			}
			return t.notFoundCounts()
		}
		if report.Planned.Import > 0 {
			err := t.checkOwner(ctx, workspace)
			if _, other := errors.AsType[*foreignError](err); other && t.decision.Operation == runs.Destroy {
				return t.notFoundCounts()
			}
			if err != nil {
				return err
			}
		}
		found, err = t.importFound(ctx, workspace, report)
		return err
	})
	return found, err
}

// importFound applies the plan of a lookup. Where that finds no instance, the plan makes one: a create may do that once the lookup counts, and a
// destroy where something that belongs to an instance was found, since nothing else brings that into the state.
func (t *task) importFound(ctx context.Context, workspace runner.Workspace, report *engine.Report) (found bool, err error) {
	instance := slices.ContainsFunc(report.Changes, func(c engine.Change) bool { return c.Import && c.Instance() })
	if why := t.wanted.Incomplete; why != nil && report.Planned.Import > 0 && lifecycle.CheckAdoption(report, nil) != "" {
		return false, why // what was found lacks something, which would be made without user data
	}
	if !instance {
		if err := t.notFoundCounts(); err != nil {
			return false, err
		}
		operation := t.decision.Operation
		if operation == runs.Update || t.wanted.Incomplete != nil && operation != runs.Destroy || operation == runs.Destroy && report.Planned.Import == 0 {
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

// notFoundCounts returns nil when a lookup that found no instance counts: what the abandoned run asked for has had the time to appear.
func (t *task) notFoundCounts() error {
	until := t.intent.Died.Add(t.wanted.Module.Settle())
	if t.intent.Abandoned == "" || !t.actuator.clock.Now().Before(until) {
		t.lookedUp = true
		return nil
	}
	return &undecidedError{until: until, text: fmt.Sprintf("the lookup finds nothing of run %s, whose requests may still be carried out", t.intent.Abandoned)}
}

// checkOwner refuses a plan that would take over an object that bears no sign of the Machine: a lookup by name may find another's, and
// a destroy would then remove it.
func (t *task) checkOwner(ctx context.Context, workspace runner.Workspace) error {
	planned, err := workspace.Planned(ctx)
	if err != nil {
		return err
	}
	if t.search() == engine.SearchAdopt {
		_, err := t.proveIdentity(planned)
		return err
	}
	uid := t.identityUID()
	for address, object := range planned.Imported {
		if !bytes.Contains(object, []byte(uid)) {
			return &foreignError{address: address, uid: string(uid)}
		}
	}
	return nil
}

// checkPlace refuses a run in another place than the instance was made in: what it finds there, or does not find, says nothing of the instance.
func (t *task) checkPlace() error {
	made := t.facts.Record.Place
	if !t.facts.Stored && t.facts.Witness != nil {
		made = t.facts.Witness.Place
	}
	if t.wanted == nil || len(made) == 0 || !t.facts.Bound() {
		return nil
	}
	if t.wanted.PlaceErr != nil {
		return reporting.Typed(t.asked, t.wanted.PlaceErr)
	}
	if !made.Contradicts(t.wanted.Place) {
		return nil
	}
	return reporting.OtherPlace(t.asked, t.facts, made.Diff(t.wanted.Place))
}

// undecidedError says that a run found nothing where an instance may be, and that it is too early to rely on it.
type undecidedError struct {
	until time.Time
	text  string
}

// Error implements error.
func (e *undecidedError) Error() string {
	return fmt.Sprintf("%s; it is looked for again after %s", e.text, e.until.UTC().Format(time.RFC3339))
}
