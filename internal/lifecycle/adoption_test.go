package lifecycle

import (
	"strings"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

func adopting(m *Target) { m.Adopt = true }

func asking(adoption Adoption) *Facts {
	return &Facts{Provisioned: true, Adoption: AdoptionRequest{Adoption: adoption}}
}

func TestDecideAdoption(t *testing.T) {
	adopted := &record.Witness{Run: "adoption", Adopted: true}
	planned := func(at time.Time, fingerprint string) *Facts {
		f := asking(AdoptionPlan)
		f.Stored, f.Record.AdoptionPlan = true, &record.PlannedAdoption{At: at, Fingerprint: fingerprint}
		return f
	}
	refusedAt := func(at time.Time) *Facts {
		f := planned(at, now)
		f.Record.AdoptionPlan.Refused = "another cluster's"
		return f
	}
	asAgain := func(f *Facts, since time.Time) *Facts {
		f.Adoption.Since = since
		return f
	}
	notThere := func(since time.Time, fingerprint string, deleting bool) *Facts {
		f := asking(AdoptionAdopt)
		f.Stored, f.Deleting, f.Record.AdoptionPlan = true, deleting, &record.PlannedAdoption{At: since, Fingerprint: fingerprint, Absent: since}
		return f
	}
	plan := Decision{Action: ActionStart, Operation: runs.Drift, Lookup: true, Adopt: true}
	adopt := Decision{Action: ActionStart, Operation: runs.Update, Lookup: true, Adopt: true}
	left := Decision{Action: ActionForeign}
	misread := &Facts{Provisioned: true, Adoption: AdoptionRequest{Misread: "annotation ..."}}
	decides(t, runs.Update, map[string]decisionCase{
		"an instance of another actuator is left alone":           {asking(AdoptionNone), able(adopting), left},
		"it is adopted on request":                                {asking(AdoptionAdopt), able(adopting), adopt},
		"by its ID as well":                                       {&Facts{Adoption: AdoptionRequest{Adoption: AdoptionAdopt, ID: "i"}}, able(adopting), adopt},
		"also where it was not there a moment ago":                {notThere(noon, now, false), able(adopting), adopt},
		"or its adoption is planned":                              {asking(AdoptionPlan), able(adopting), plan},
		"not where nothing names it":                              {&Facts{Adoption: AdoptionRequest{Adoption: AdoptionPlan}}, able(adopting), left},
		"but not where the module cannot":                         {asking(AdoptionAdopt), able(), left},
		"nor where the annotation is not understood":              {misread, able(adopting), left},
		"a plan is shown":                                         {planned(noon.Add(-time.Minute), now), able(adopting), left},
		"a plan of other inputs is made anew":                     {planned(noon.Add(-time.Minute), other), able(adopting), plan},
		"an old plan is made anew":                                {planned(noon.Add(-2*time.Hour), now), able(adopting), plan},
		"a plan from before the last request is made anew":        {asAgain(planned(noon.Add(-time.Minute), now), noon.Add(-time.Second)), able(adopting), plan},
		"a refusal is made anew sooner":                           {refusedAt(noon.Add(-10 * time.Minute)), able(adopting), plan},
		"a refusal is shown":                                      {refusedAt(noon.Add(-time.Minute)), able(adopting), left},
		"a plan that was cut off is made anew":                    {planned(time.Time{}, now), able(adopting), plan},
		"an adoption that was cut off goes on":                    {&Facts{Stored: true, Provisioned: true, Witness: adopted, Record: record.Record{Intent: &record.Intent{Operation: runs.Update}}}, able(adopting), lookingUp(runs.Update)},
		"an adopted instance whose state is missing is looked up": {&Facts{Provisioned: true, Witness: adopted}, able(adopting, blind), lookingUp(runs.Update)},
		"which only the search for adoptions can":                 {&Facts{Provisioned: true, Witness: adopted}, able(), Decision{Action: ActionUnresolved, Operation: runs.Update}},
		"a run under way is waited for": {
			&Facts{Provisioned: true, Adoption: AdoptionRequest{Adoption: AdoptionAdopt}, Run: run(runs.Update, runs.Running)}, able(adopting), Decision{Action: ActionInProgress},
		},
	})
	decides(t, runs.Destroy, map[string]decisionCase{
		"an instance of another actuator is not destroyed": {asking(AdoptionNone), able(adopting), left},
		"it is adopted first where that is requested":      {asking(AdoptionAdopt), able(adopting), adopt},
		"nor one whose adoption was planned":               {planned(noon, now), able(adopting), left},
		"one that was not there is looked for once more": {
			notThere(settled.Add(time.Second), now, true), able(adopting), Decision{Action: ActionRequeueAfter, Operation: runs.Update, Until: noon.Add(time.Second)},
		},
		"when that counts":                                     {notThere(settled, now, true), able(adopting), adopt},
		"and at once with other inputs":                        {notThere(noon, other, true), able(adopting), adopt},
		"an adoption that was cut off is looked up, destroyed": {&Facts{Stored: true, Provisioned: true, Witness: adopted}, able(adopting), lookingUp(runs.Destroy)},
	})
	decides(t, runs.Create, map[string]decisionCase{
		"nothing is created while the adoption is planned":            {&Facts{Adoption: AdoptionRequest{Adoption: AdoptionPlan}}, able(adopting), left},
		"nothing is created beside an instance that is to be adopted": {&Facts{Adoption: AdoptionRequest{Adoption: AdoptionPlan, ID: "i"}}, able(adopting), left},
		"a new Machine of a set whose Machines are adopted":           {&Facts{Adoption: AdoptionRequest{Adoption: AdoptionAdopt}}, able(adopting), starting(runs.Create)},
	})
}

func TestDecideRelease(t *testing.T) {
	release := AdoptionRequest{Adoption: AdoptionRelease}
	own := &Facts{Stored: true, Provisioned: true, State: stateWith(1, 0), Witness: seen(), Adoption: release, Record: record.Record{Fingerprint: now}}
	started := Decision{Action: ActionStart, Operation: runs.Update, Release: true}
	for _, asked := range []runs.Operation{runs.Update, runs.Destroy} {
		decides(t, asked, map[string]decisionCase{
			string(asked) + " forgets the state on request":     {own, able(), started},
			string(asked) + " leaves a Machine that has none":   {&Facts{Provisioned: true, Adoption: release}, able(adopting), Decision{Action: ActionForeign}},
			string(asked) + " waits for the run that is active": {&Facts{Stored: true, Witness: seen(), Adoption: release, Run: run(runs.Update, runs.Running)}, able(), Decision{Action: ActionInProgress}},
		})
	}
	decides(t, runs.Destroy, map[string]decisionCase{
		"what is destroyed is not released": {&Facts{Witness: &record.Witness{Destroyed: &noon}, Adoption: release}, able(), Decision{Action: ActionDone}},
	})
	if d := Stale(runs.Update, &Facts{Deleting: true, Provisioned: true, Adoption: AdoptionRequest{Adoption: AdoptionAdopt}}); d.Action != ActionStart {
		t.Errorf("the adoption of a Machine that is being deleted is %v, want it to go on", d)
	}
	if d := Stale(runs.Update, &Facts{Deleting: true, Adoption: release}); d.Action != ActionStart {
		t.Errorf("the release of a Machine that is being deleted is %v, want it to go on", d)
	}
}

func TestAdoptionRequest(t *testing.T) {
	for name, tc := range map[string]struct {
		annotations map[string]string
		want        AdoptionRequest
		wantMisread string
	}{
		"nothing":          {nil, AdoptionRequest{}, ""},
		"by its ID":        {map[string]string{AdoptionAnnotation: "Plan", AdoptIDAnnotation: "i-1"}, AdoptionRequest{Adoption: AdoptionPlan, ID: "i-1"}, ""},
		"once more":        {map[string]string{AdoptionAnnotation: "Adopt", AdoptionRequestedAnnotation: "2026-03-01T12:00:00Z"}, AdoptionRequest{Adoption: AdoptionAdopt, Since: noon}, ""},
		"an unknown value": {map[string]string{AdoptionAnnotation: "yes"}, AdoptionRequest{}, `adoption is "yes": set it to Plan, Adopt or Release`},
		"a time that is none": {map[string]string{AdoptionAnnotation: "Plan", AdoptionRequestedAnnotation: "now"}, AdoptionRequest{Adoption: AdoptionPlan},
			`adoption-requested-at is "now": set it to a time`},
	} {
		t.Run(name, func(t *testing.T) {
			machine := &machinev1beta1.Machine{}
			machine.Annotations = tc.annotations
			got := adoptionRequest(machine)
			if !strings.Contains(got.Misread, tc.wantMisread) || (got.Misread == "") != (tc.wantMisread == "") {
				t.Errorf("%q, want %q", got.Misread, tc.wantMisread)
			}
			if got.Misread = ""; got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}
