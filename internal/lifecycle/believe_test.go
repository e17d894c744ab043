package lifecycle

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// A time that is yet to come blocks no Machine, and nothing is made or given up because of it.
func TestAMachineIsNotBlockedByATimeThatIsYetToCome(t *testing.T) {
	far := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	stored := func(instances int, r record.Record) *Facts {
		return &Facts{Stored: true, State: stateWith(instances, 0), Record: r}
	}
	asked := func(f *Facts, since time.Time) *Facts {
		f.Adoption.Since = since
		return f
	}
	missing := record.Record{Fingerprint: now, Check: &record.DriftCheck{At: far, Result: record.DriftMissing}}
	for name, tc := range map[string]struct {
		operation runs.Operation
		facts     *Facts
		want      Decision
	}{
		"a create looks an abandoned run up":     {runs.Create, stored(0, record.Record{Intent: lookedFor(far)}), lookingUp(runs.Create)},
		"a destroy looks an abandoned run up":    {runs.Destroy, stored(0, record.Record{Intent: lookedFor(far)}), lookingUp(runs.Destroy)},
		"a destroy looks for what was not there": {runs.Destroy, stored(1, missing), starting(runs.Destroy)},
		"a drift check is made":                  {runs.Update, stored(1, record.Record{Fingerprint: now, Check: &record.DriftCheck{At: far}}), starting(runs.Drift)},
		"a second instance is looked for": {
			runs.Update, stored(1, record.Record{Fingerprint: now, SecondLook: &far, Check: &record.DriftCheck{At: noon}}), lookingUp(runs.Drift),
		},
		"an adoption is not planned without end": {runs.Update, asked(asking(AdoptionPlan), far), Decision{Action: ActionForeign}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.facts.Believe(noon)
			means := able(adopting)
			means.Due = Schedule{interval: time.Hour}.Due(tc.facts, noon)
			if diff := cmp.Diff(tc.want, Decide(tc.operation, tc.facts, means), cmpopts.IgnoreFields(Decision{}, "Reason")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestARequestOfAnAdoptionIsOfThePresent(t *testing.T) {
	for since, want := range map[time.Time]string{
		{}: "", noon: "", noon.Add(record.MaxSkew): "",
		noon.Add(record.MaxSkew + time.Second): "adoption-requested-at is 2026-03-01T12:05:01Z, which is in the future; set it to the current time",
	} {
		f := asking(AdoptionPlan)
		f.Adoption.Since = since
		f.Believe(noon)
		if !strings.Contains(f.Adoption.Misread, want) || (want == "") != (f.Adoption.Misread == "") {
			t.Errorf("of %s it says %q, want %q", since, f.Adoption.Misread, want)
		}
	}
}
