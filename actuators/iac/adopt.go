package iac

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/actuators/reporting"
	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// outputProviderID is the module output that identifies an adopted instance.
const outputProviderID = "provider_id"

// refusedAdoption says why an instance cannot be adopted. absent reports that no instance was
// found.
type refusedAdoption struct {
	why    string
	absent bool
}

// Error implements error.
func (e *refusedAdoption) Error() string { return "instance not adopted: " + e.why }

// adopt imports an existing instance, or plans the import.
type adopt struct {
	*task
	// planned is the finding about the adoption, or nil.
	planned *record.PlannedAdoption
	// absent reports that a Machine being deleted has no instance to adopt.
	absent bool
}

// execute finds the existing instance, checks the plan that imports it, and applies the plan if an
// adoption is requested. It records the findings either way.
func (t *adopt) execute(ctx context.Context) error {
	return t.inWorkspace(ctx, engine.SearchAdopt, func(workspace runner.Workspace) error {
		report, err := workspace.Plan(ctx)
		var planned *engine.PlannedObjects
		var providerID string
		if err == nil {
			planned, err = workspace.Planned(ctx)
		} else if why := t.whyNotPlanned(err); why != nil {
			report, planned, err = &engine.Report{}, &engine.PlannedObjects{}, why
		}
		if err == nil {
			providerID, err = t.checkAdoption(ctx, report, planned)
		}
		refusal, refused := errors.AsType[*refusedAdoption](err)
		if err != nil && !refused {
			return err
		}
		found := adoptionFound(report, planned)
		found.At, found.Fingerprint = t.actuator.clock.Now().UTC(), t.wanted.Fingerprint
		if refused {
			found.Refused = refusal.why
		}
		if refused && refusal.absent {
			found.Absent = cmp.Or(t.facts.Record.AdoptionPlan.AbsentSince(t.wanted.Fingerprint), found.At)
		}
		found = found.Bounded()
		t.planned = &found
		switch {
		case t.decision.Operation == runs.Drift:
			return nil
		case refused && refusal.absent && t.facts.Deleting:
			return t.nothingToDelete(refusal)
		case refused:
			return actuators.UpdateFailed("%s", refusal.Error())
		}
		return t.takeOver(ctx, workspace, providerID)
	})
}

// nothingToDelete concludes the deletion of a Machine whose instance was not found for adoption.
// The operator owns nothing of it and can destroy nothing. As with its own instances, it takes two
// empty searches. A failed search proves nothing.
func (t *adopt) nothingToDelete(refusal *refusedAdoption) error {
	earlier, again := t.facts.Record.AdoptionPlan.AbsentSince(t.wanted.Fingerprint),
		lifecycle.SecondLookAfter(t.wanted.Module.Settle())
	if until := t.planned.Absent.Add(again); earlier.IsZero() || t.planned.At.Before(until) {
		return &undecidedError{until: until, text: refusal.why}
	}
	t.absent = true
	return nil
}

// noInstance refuses an adoption because no instance was found.
func (t *adopt) noInstance() *refusedAdoption {
	where := ""
	if place := t.wanted.Place.String(); place != "" {
		where = " in " + place
	}
	return &refusedAdoption{why: "no instance found " + t.instanceToAdopt() + where, absent: true}
}

// whyNotPlanned returns the refusal of an adoption that cannot be planned, or nil if a retry may
// succeed.
func (t *adopt) whyNotPlanned(err error) *refusedAdoption {
	if runner.IsNotFound(err, t.wanted.Module, engine.SearchAdopt) {
		return t.noInstance()
	}
	failed, ok := errors.AsType[*failure.Error](err)
	if !ok || len(failed.Diagnostics) == 0 {
		return nil
	}
	for _, diagnostic := range failed.Diagnostics {
		known := strings.HasSuffix(diagnostic.Summary, "condition failed") ||
			failure.Classify([]failure.Diagnostic{diagnostic}, nil) == failure.ImportMissing
		if diagnostic.Severity == failure.SeverityError && !known {
			return nil
		}
	}
	return &refusedAdoption{why: err.Error()}
}

// checkAdoption refuses a plan that does not import the Machine's own instance, unchanged or
// updated in place. It returns the instance's provider ID, or "" if that is not known yet.
func (t *adopt) checkAdoption(ctx context.Context, report *engine.Report,
	planned *engine.PlannedObjects) (string, error) {
	if !slices.ContainsFunc(report.Changes, func(c engine.Change) bool { return c.Import && c.Instance() }) {
		return "", t.noInstance()
	}
	if refused := lifecycle.CheckAdoption(report, t.wanted.Module.AdoptCreates()); refused != "" {
		return "", &refusedAdoption{why: refused}
	}
	if disruption := report.Disruption(t.wanted.Module.Effects(), planned.Changed); disruption != "" {
		return "", &refusedAdoption{why: disruption + "; change the providerSpec to match the instance"}
	}
	if refused := t.changesControlPlane(report, planned); refused != "" {
		return "", &refusedAdoption{why: refused}
	}
	id, err := t.proveIdentity(planned)
	if err != nil {
		return "", err
	}
	return id, t.checkOtherOwners(ctx, id)
}

// changesControlPlane returns why an adoption is refused that would change a control-plane
// instance, or "". A wrong providerSpec must not cost etcd a member.
func (t *adopt) changesControlPlane(report *engine.Report, planned *engine.PlannedObjects) string {
	if !lifecycle.ControlPlane(t.machine) {
		return ""
	}
	changes := adoptionFound(report, planned).Changes
	if len(changes) == 0 {
		return ""
	}
	return "an adoption must not change a control-plane instance, but would change " + strings.Join(changes, "; ") +
		": change the providerSpec to match the instance"
}

// adoptionFound summarizes an adoption plan for people: names and the module's own messages.
func adoptionFound(report *engine.Report, planned *engine.PlannedObjects) record.PlannedAdoption {
	var found record.PlannedAdoption
	for _, change := range report.Changes {
		if change.Import {
			found.Imports = append(found.Imports, change.Address)
		}
		switch change.Action {
		case engine.ActionCreate:
			found.Creates = append(found.Creates, change.Address)
		case engine.ActionUpdate:
			found.Changes = append(found.Changes,
				strings.TrimSuffix(change.Address+": "+strings.Join(planned.Changed[change.Address], ", "), ": "))
		}
	}
	for _, diagnostic := range report.Diagnostics {
		if diagnostic.CheckFailed() {
			found.Differences = append(found.Differences, diagnostic.Reason())
		}
	}
	slices.Sort(found.Imports)
	slices.Sort(found.Creates)
	slices.Sort(found.Changes)
	return found
}

// takeOver applies an adoption plan. It records the adoption on the Machine first, so that a lost
// state triggers a lookup.
func (t *adopt) takeOver(ctx context.Context, workspace runner.Workspace, providerID string) error {
	w := record.Witness{
		Run: t.id, Since: t.actuator.clock.Now().UTC(), Place: t.wanted.Place, Adopted: true, ProviderID: providerID,
		ID: t.facts.Adoption.ID,
	}
	if err := t.actuator.writeWitness(ctx, t.machine, w); err != nil {
		return err
	}
	t.touched = true
	applied, err := workspace.ApplyPlan(ctx)
	t.noteApplied(applied)
	if err == nil {
		t.found = t.checkedNow(record.DriftCheck{Result: record.DriftNone})
	}
	return err
}

// adoptionBegins marks a head as created for an adoption. It is not a state of the instance until
// the adoption is done.
func (t *task) adoptionBegins(p record.Patch) record.Patch {
	if t.facts.Record.AdoptionPlan == nil {
		p.SetAdoptionPlan(record.PlannedAdoption{Fingerprint: t.wanted.Fingerprint})
	}
	return p
}

// settle implements operation. If the adoption was not carried out, it records the findings, and the
// intent remains only if the engine may have started it.
func (t *adopt) settle(ctx context.Context, outcome error) error {
	plans := t.decision.Operation == runs.Drift
	switch {
	case outcome == nil && t.absent:
		if err := t.deleteState(ctx, true); err != nil {
			return err
		}
		reporting.Succeeded(runs.Destroy, t.machine, "Deleted nothing: "+t.planned.Refused).Send(t.actuator.recorder)
		return nil
	case outcome == nil && !plans:
		if err := t.storeInputs(ctx); err != nil {
			return err
		}
		if err := t.conclude(ctx, t.patchFor(nil), nil); err != nil {
			return err
		}
		reporting.Adopted(t.machine, len(t.planned.Changes) > 0).Send(t.actuator.recorder)
		return nil
	}
	p := record.NewPatch()
	if t.intent != nil && !t.touched {
		p.ClearIntent()
	}
	if t.planned == nil && outcome != nil && plans && !runs.Interrupted(outcome) {
		failed := record.PlannedAdoption{
			At: t.actuator.clock.Now().UTC(), Fingerprint: t.wanted.Fingerprint,
			Refused: "planning failed: " + reporting.Typed(runs.Update, outcome).Message,
		}.Bounded()
		t.planned = &failed
	}
	if t.planned != nil {
		p.SetAdoptionPlan(*t.planned)
	}
	return t.conclude(ctx, p, outcome)
}

// release gives up the instance: settle discards its state.
type release struct{ *task }

func (t release) execute(context.Context) error { return nil }

// settle deletes the state of a released instance. The Machine's annotation is removed first.
// Without it, but with a state, the Machine still counts as managed, so that the next manager
// completes the release after a crash.
func (t release) settle(ctx context.Context, _ error) error {
	if t.facts.Witness != nil && !t.facts.Gone {
		if err := t.actuator.removeWitness(ctx, t.machine); err != nil {
			return t.releaseFailed(ctx, err)
		}
	}
	if err := t.session.Forget(ctx); err != nil {
		return t.releaseFailed(ctx, err)
	}
	reporting.Released(t.machine).Send(t.actuator.recorder)
	return nil
}
