package iac

import (
	"context"
	"errors"
	"fmt"
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/actuators/reporting"
	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

// destroy removes the instance and everything created with it.
type destroy struct{ *task }

// execute removes the instance and everything created with it. A destroy plan cannot do anything
// else, so it is not read. The report is read: an instance that was not found is looked up again
// before its state is discarded.
func (t destroy) execute(ctx context.Context) error {
	if t.wanted == nil {
		return nil // nothing was created
	}
	there := t.facts.HasResources()
	if t.decision.Lookup {
		found, err := lookup(t).find(ctx)
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
func (t destroy) forgetParts(ctx context.Context, raw []byte) error {
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
		return a.Instance() && a.Action == engine.ActionDelete
	})
}

// instanceNotFound handles a destroy that did not find the instance. The engine has already dropped
// it from the state. The earlier state is restored until a second look, after the module's
// settlement period, confirms the result.
func (t destroy) instanceNotFound(ctx context.Context, before []byte) error {
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
func (t destroy) placeUnproven() string {
	made := t.wanted.Here(t.facts.Record.Place)
	if len(made) == 0 || made.Equal(t.wanted.Place) || t.facts.Confirmed == string(t.uid) {
		return ""
	}
	return made.Diff(t.wanted.Place)
}

// settle implements operation.
func (t destroy) settle(ctx context.Context, outcome error) error {
	if outcome != nil {
		return t.conclude(ctx, t.patchFor(outcome), outcome)
	}
	if err := t.deleteState(ctx, t.facts.Witness != nil || t.facts.Provisioned); err != nil {
		return err
	}
	switch {
	case t.facts.HasInstance() || t.facts.HalfMade() || t.imported:
		reporting.Succeeded(runs.Destroy, t.machine, "Deleted the instance").Send(t.actuator.recorder)
	case t.facts.HasResources():
		reporting.Succeeded(runs.Destroy, t.machine, "Deleted what was created before the instance").Send(t.actuator.recorder)
	}
	t.reportLeftBehind()
	return nil
}

// reportLeftBehind sends the event about what remains after the instance was destroyed.
func (t destroy) reportLeftBehind() {
	if t.facts.State == nil {
		return
	}
	if had, err := t.facts.Outputs(); err == nil && len(had.Outlives) > 0 {
		reporting.LeftBehind(t.machine, had.Outlives).Send(t.actuator.recorder)
	}
}

// deleteState deletes the state of a destroyed instance. If mark is set, it first records on the
// Machine that its instance is gone: in the other order, a crash in between would trigger a lookup of
// the instance. If the state still lists resources, it stays and the destroy fails.
func (t *task) deleteState(ctx context.Context, mark bool) error {
	t.keepOutput(ctx)
	if mark && !t.facts.Gone {
		now := t.actuator.clock.Now().UTC()
		err := t.actuator.writeWitness(ctx, t.machine, record.Witness{Run: t.id, Since: now, Destroyed: &now})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) { // not gone or replaced
			return t.releaseFailed(ctx, err)
		}
	}
	if err := t.session.Delete(ctx); err != nil {
		return t.releaseFailed(ctx, err)
	}
	return nil
}

// releaseFailed releases the lock after a destroy that could not be concluded.
func (t *task) releaseFailed(ctx context.Context, err error) error {
	p := record.NewPatch()
	p.SetLastRun(t.lastRun(err))
	return reporting.Typed(runs.Destroy, errors.Join(err, t.session.Release(ctx, p.MetaPatch)))
}

// unclaimed returns an error if another Machine refers to the resources in a deleted Machine's
// state. Such a Machine was restored from a backup or copied, and would lose its instance.
func (t *task) unclaimed(ctx context.Context) error {
	if !t.facts.Gone {
		return nil
	}
	providerID := ""
	if has, err := t.facts.Outputs(); err == nil {
		providerID = has.ProviderID
	}
	machines := &machinev1beta1.MachineList{}
	if err := t.actuator.client.List(ctx, machines, client.InNamespace(t.key.Namespace)); err != nil {
		return fmt.Errorf("listing Machines: %w", err)
	}
	for i := range machines.Items {
		if named := record.Names(&machines.Items[i], t.uid, providerID); named != "" {
			return actuators.DeleteFailed("not destroying the resources in the state: Machine %s refers to them: %s",
				machines.Items[i].Name, named)
		}
	}
	return nil
}
