package iac

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// variableAdopt is the variable declared by a module's adopt/ folder.
const variableAdopt = "adopt"

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

// adopt finds the existing instance, checks the plan that imports it, and applies the plan if an
// adoption is requested. It records the findings either way.
func (t *task) adopt(ctx context.Context) error {
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
			found.Absent = t.absentSince(found.At)
		}
		found = found.Bounded()
		t.adoption = &found
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

// absentSince returns since when searches have found no instance, given that the current one found
// none.
func (t *task) absentSince(now time.Time) time.Time {
	if first := t.facts.Record.AdoptionPlan.AbsentSince(t.wanted.Fingerprint); !first.IsZero() {
		return first
	}
	return now
}

// nothingToDelete concludes the deletion of a Machine whose instance was not found for adoption.
// The operator owns nothing of it and can destroy nothing. As with its own instances, it takes two
// empty searches. A failed search proves nothing.
func (t *task) nothingToDelete(refusal *refusedAdoption) error {
	earlier, again := t.facts.Record.AdoptionPlan.AbsentSince(t.wanted.Fingerprint),
		lifecycle.SecondLookAfter(t.wanted.Module.Settle())
	if until := t.adoption.Absent.Add(again); earlier.IsZero() || t.adoption.At.Before(until) {
		return &undecidedError{until: until, text: refusal.why}
	}
	t.absent = true
	return nil
}

// noInstance refuses an adoption because no instance was found.
func (t *task) noInstance() *refusedAdoption {
	return &refusedAdoption{why: "no instance found " + t.instanceToAdopt() + t.inPlace(), absent: true}
}

// whyNotPlanned returns the refusal of an adoption that cannot be planned, or nil if a retry may
// succeed.
func (t *task) whyNotPlanned(err error) *refusedAdoption {
	if runner.IsNotFound(err, t.wanted.Module, engine.SearchAdopt) {
		return t.noInstance()
	}
	failed, ok := errors.AsType[*failure.Error](err)
	if !ok {
		return nil
	}
	for _, diagnostic := range failed.Diagnostics {
		known := strings.HasSuffix(diagnostic.Summary, "condition failed") ||
			failure.Classify([]failure.Diagnostic{diagnostic}, nil) == failure.ImportMissing
		if diagnostic.Severity == failure.SeverityError && !known {
			return nil
		}
	}
	if len(failed.Diagnostics) == 0 {
		return nil
	}
	return &refusedAdoption{why: err.Error()}
}

// instanceToAdopt describes the instance to adopt, for people.
func (t *task) instanceToAdopt() string {
	providerID, id := t.adoptee()
	switch {
	case id != "":
		return "with the ID " + id
	case providerID != "":
		return "with the provider ID " + providerID
	}
	return "with the name " + t.key.Name
}

// inPlace describes the searched place, for people.
func (t *task) inPlace() string {
	if where := t.wanted.Place.String(); where != "" {
		return " in " + where
	}
	return ""
}

// checkAdoption refuses a plan that does not import the Machine's own instance, unchanged or
// updated in place. It returns the instance's provider ID, or "" if that is not known yet.
func (t *task) checkAdoption(ctx context.Context, report *engine.Report,
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

// checkBearer refuses an instance that carries another Machine's UID, unless this installation
// created it for a deleted Machine.
func (t *task) checkBearer(planned *engine.PlannedObjects) error {
	for address, object := range planned.Imported {
		owner, _ := t.wanted.Module.Identities().OwnerOf(address, object)
		own := owner.MachineUID == "" || owner.MachineUID == string(t.identityUID()) || owner.MachineUID == string(t.uid)
		if !own && (owner.Installation == "" || owner.Installation != string(t.actuator.installation.UID())) {
			return &refusedAdoption{why: (&module.ForeignError{Address: address, Owner: owner.MachineUID}).Error()}
		}
	}
	return nil
}

// proveIdentity returns the provider ID of the found instance, which must match the Machine's.
func (t *task) proveIdentity(planned *engine.PlannedObjects) (string, error) {
	if err := t.checkBearer(planned); err != nil {
		return "", err
	}
	var found string
	if raw, known := planned.Outputs[outputProviderID]; known && json.Unmarshal(raw, &found) != nil {
		return "", &refusedAdoption{why: "the module's output " + outputProviderID + " is not a string"}
	}
	wanted, instanceID := t.adoptee()
	switch {
	case found != "" && (wanted == "" || wanted == found):
		return found, nil
	case found != "":
		return "", &refusedAdoption{why: fmt.Sprintf("the instance found has the provider ID %s, but the Machine has %s",
			found, wanted)}
	}
	id := cmp.Or(wanted[strings.LastIndex(wanted, "/")+1:], instanceID)
	shows := func(address string) bool {
		return t.wanted.Module.MayBeInstance(address) && module.Names(planned.Imported[address], id)
	}
	if id == "" || !slices.ContainsFunc(slices.Collect(maps.Keys(planned.Imported)), shows) {
		return "", &refusedAdoption{why: "nothing proves that the object found is the instance " + t.instanceToAdopt()}
	}
	return wanted, nil
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
func (t *task) takeOver(ctx context.Context, workspace runner.Workspace, providerID string) error {
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
		t.lookedUp, t.imported = true, true
		t.found = t.checkedNow(record.DriftCheck{Result: record.DriftNone})
	}
	return err
}

// search returns the search that finds the Machine's instance if the state lacks it.
func (t *task) search() engine.Search {
	if t.decision.Adopt || t.facts.Adopted() {
		return engine.SearchAdopt
	}
	return engine.SearchLookup
}
