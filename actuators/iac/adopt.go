package iac

import (
	"bytes"
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
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// variableAdopt is the variable that adopt/ of a module declares.
const variableAdopt = "adopt"

// outputProviderID is the module's output that an adopted instance is compared with.
const outputProviderID = "provider_id"

// refusedAdoption says why an instance cannot be adopted; absent, that there is none.
type refusedAdoption struct {
	why    string
	absent bool
}

// Error implements error.
func (e *refusedAdoption) Error() string { return "the instance is not adopted: " + e.why }

// adopt finds the instance that something else has made, checks the plan that brings it into the state, and carries it out where that is
// requested. What was found is recorded either way.
func (t *task) adopt(ctx context.Context) error {
	return t.inWorkspace(ctx, engine.SearchAdopt, func(workspace runner.Workspace) error {
		report, err := workspace.Plan(ctx)
		var planned *engine.PlannedObjects
		if err == nil {
			planned, err = workspace.Planned(ctx)
		} else if why := t.whyNotPlanned(err); why != nil {
			report, planned, err = &engine.Report{}, &engine.PlannedObjects{}, why
		}
		if err == nil {
			err = t.checkAdoption(ctx, report, planned)
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
		return t.takeOver(ctx, workspace)
	})
}

// absentSince returns since when searches have found no instance, where the one of now has found none.
func (t *task) absentSince(now time.Time) time.Time {
	if first := t.facts.Record.AdoptionPlan.AbsentSince(t.wanted.Fingerprint); !first.IsZero() {
		return first
	}
	return now
}

// nothingToDelete concludes the deletion of a Machine whose instance is not there to adopt: nothing of it is owned, and nothing can be destroyed. As with
// an instance of its own, that takes two searches that found nothing. One that failed says nothing.
func (t *task) nothingToDelete(refusal *refusedAdoption) error {
	earlier, again := t.facts.Record.AdoptionPlan.AbsentSince(t.wanted.Fingerprint), lifecycle.SecondLookAfter(t.wanted.Module.Settle())
	if until := t.adoption.Absent.Add(again); earlier.IsZero() || t.adoption.At.Before(until) {
		return &undecidedError{until: until, text: refusal.why}
	}
	t.absent = true
	return nil
}

// noInstance refuses an adoption since there is nothing to adopt.
func (t *task) noInstance() *refusedAdoption {
	return &refusedAdoption{why: "there is no instance " + t.instanceToAdopt() + t.inPlace(), absent: true}
}

// whyNotPlanned returns why an adoption that cannot be planned is refused; nil where the plan may succeed when it is tried again.
func (t *task) whyNotPlanned(err error) *refusedAdoption {
	if runner.IsNotFound(err, t.wanted.Module, engine.SearchAdopt) {
		return t.noInstance()
	}
	failed, ok := errors.AsType[*failure.Error](err)
	if !ok {
		return nil
	}
	for _, diagnostic := range failed.Diagnostics {
		known := strings.HasSuffix(diagnostic.Summary, "condition failed") || failure.Classify([]failure.Diagnostic{diagnostic}, nil) == failure.ImportMissing
		if diagnostic.Severity == failure.SeverityError && !known {
			return nil
		}
	}
	if len(failed.Diagnostics) == 0 {
		return nil
	}
	return &refusedAdoption{why: err.Error()}
}

// instanceToAdopt names the instance that is to be adopted, for people.
func (t *task) instanceToAdopt() string {
	if id := t.facts.Adoption.ID; id != "" {
		return "with the ID " + id
	}
	return "with the provider ID " + t.providerID()
}

func (t *task) providerID() string {
	if t.machine.Spec.ProviderID == nil {
		return ""
	}
	return *t.machine.Spec.ProviderID
}

// inPlace names the place that is searched, for people.
func (t *task) inPlace() string {
	if where := t.wanted.Place.String(); where != "" {
		return " in " + where
	}
	return ""
}

// checkAdoption refuses a plan that does not bring the Machine's own instance into the state as it is, or in place.
func (t *task) checkAdoption(ctx context.Context, report *engine.Report, planned *engine.PlannedObjects) error {
	if !slices.ContainsFunc(report.Changes, func(c engine.Change) bool { return c.Import && c.Instance() }) {
		return t.noInstance()
	}
	if refused := lifecycle.CheckAdoption(report, t.wanted.Module.AdoptCreates()); refused != "" {
		return &refusedAdoption{why: refused}
	}
	id, err := t.proveIdentity(planned)
	if err != nil {
		return err
	}
	return t.checkOtherOwners(ctx, id)
}

// proveIdentity returns the provider ID of the instance that was found, which must be the Machine's.
func (t *task) proveIdentity(planned *engine.PlannedObjects) (string, error) {
	var found string
	if raw, known := planned.Outputs[outputProviderID]; known && json.Unmarshal(raw, &found) != nil {
		return "", &refusedAdoption{why: "the module's output " + outputProviderID + " is no string"}
	}
	wanted := t.providerID()
	switch {
	case found != "" && (wanted == "" || wanted == found):
		return found, nil
	case found != "":
		return "", &refusedAdoption{why: fmt.Sprintf("what was found has the provider ID %s, and the Machine has %s", found, wanted)}
	}
	id := cmp.Or(wanted[strings.LastIndex(wanted, "/")+1:], t.facts.Adoption.ID)
	shows := func(address string) bool {
		return t.wanted.Module.MayBeInstance(address) && bytes.Contains(planned.Imported[address], []byte(id))
	}
	if id == "" || !slices.ContainsFunc(slices.Collect(maps.Keys(planned.Imported)), shows) {
		return "", &refusedAdoption{why: "nothing of what was found proves that it is the instance " + t.instanceToAdopt()}
	}
	return wanted, nil
}

// adoptionFound returns what a plan of an adoption holds, for people: names and the module's own messages.
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
			found.Changes = append(found.Changes, strings.TrimSuffix(change.Address+": "+strings.Join(planned.Changed[change.Address], ", "), ": "))
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

// takeOver carries out the plan of an adoption. The Machine says so first: from then on its instance is looked for where the state lacks it.
func (t *task) takeOver(ctx context.Context, workspace runner.Workspace) error {
	w := record.Witness{UID: string(t.uid), Run: t.id, Since: t.actuator.clock.Now().UTC(), Place: t.wanted.Place, Adopted: true}
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

// withAdopt adds to the variables of a run what adopt/ searches by.
func (t *task) withAdopt(variables []byte) ([]byte, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(variables, &all); err != nil {
		return nil, errors.New("the inputs are no JSON object") // the decoder's words may show a value
	}
	adopt, err := json.Marshal(map[string]string{"provider_id": t.providerID(), "id": t.facts.Adoption.ID})
	if err != nil {
		return nil, fmt.Errorf("writing the variable %s: %w", variableAdopt, err)
	}
	all[variableAdopt] = adopt
	return json.Marshal(all)
}

// search returns what finds the Machine's instance where the state lacks it.
func (t *task) search() engine.Search {
	if t.decision.Adopt || t.facts.Adopted() {
		return engine.SearchAdopt
	}
	return engine.SearchLookup
}
