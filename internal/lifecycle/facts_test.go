package lifecycle

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

func TestBoundTo(t *testing.T) {
	for name, tc := range map[string]struct {
		facts *Facts
		want  string
	}{
		"a Machine that nothing is known of is free":               {&Facts{}, ""},
		"an instance binds":                                        {&Facts{State: stateWith(1, 0), Record: record.Record{Module: "m"}}, "m"},
		"so does what a create left half made":                     {&Facts{State: stateWith(1, 1), Record: record.Record{Module: "m"}}, "m"},
		"and what a create may have made":                          {&Facts{State: stateWith(0, 0), Record: record.Record{Module: "m", Intent: begun()}}, "m"},
		"a create that failed and left nothing may go on with any": {&Facts{State: &statefile.State{}, Record: record.Record{Module: "m"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.facts.PinnedModule(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func stateWith(instances, tainted int) *statefile.State {
	return &statefile.State{Resources: []statefile.Resource{
		{Mode: statefile.ModeManaged, Type: "thing", Name: "this", Instances: instances, Tainted: tainted},
	}}
}

// begun is the intent of a create that may have made an instance.
func begun() *record.Intent { return &record.Intent{Operation: runs.Create, Run: "lost"} }

func TestExists(t *testing.T) {
	for name, tc := range map[string]struct {
		facts *Facts
		want  bool
	}{
		"no, without a state":                        {&Facts{}, false},
		"no, with a state that is empty":             {&Facts{Stored: true, State: stateWith(0, 0)}, false},
		"yes, with the instance in the state":        {&Facts{Stored: true, State: stateWith(1, 0)}, true},
		"no, when the instance is only half made":    {&Facts{Stored: true, State: stateWith(1, 1)}, false},
		"no, when a drift check found it gone":       {&Facts{Stored: true, State: stateWith(1, 0), Record: record.Record{Check: &record.DriftCheck{Result: record.DriftMissing}}}, false},
		"yes, when a drift check found it changed":   {&Facts{Stored: true, State: stateWith(1, 0), Record: record.Record{Check: &record.DriftCheck{Result: record.DriftChanged}}}, true},
		"yes, when its run has not settled":          {&Facts{Stored: true, State: stateWith(1, 0), Record: record.Record{Intent: begun()}}, true},
		"no, when only something beside it was made": {&Facts{Stored: true, State: &statefile.State{Resources: []statefile.Resource{{Mode: statefile.ModeManaged, Name: "disk", Instances: 1}}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.facts.Exists(); got != tc.want {
				t.Errorf("exists is %t, want %t", got, tc.want)
			}
		})
	}
}

func TestIdentity(t *testing.T) {
	for name, tc := range map[string]struct {
		facts Facts
		want  types.UID
	}{
		"the Machine's own": {Facts{Witness: &record.Witness{UID: "own"}}, "own"},
		"that of the state": {Facts{Record: record.Record{IdentityUID: "old"}, Witness: &record.Witness{UID: "own"}}, "old"},
		"that of the Machine, where the state is missing": {Facts{Witness: &record.Witness{UID: "own", IdentityUID: "old"}}, "old"},
		"that of the state, where both have one":          {Facts{Record: record.Record{IdentityUID: "old"}, Witness: &record.Witness{UID: "own", IdentityUID: "older"}}, "old"},
		"the Machine's own, where nothing is there yet":   {Facts{}, "own"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.facts.Identity("own"); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestUnproven(t *testing.T) {
	for name, tc := range map[string]struct {
		facts *Facts
		want  bool
	}{
		"an interrupted create":                        {&Facts{State: stateWith(1, 0), Record: record.Record{Intent: begun()}}, true},
		"a create that was completed":                  {&Facts{State: stateWith(1, 0), Record: record.Record{Fingerprint: "sha256:x"}}, false},
		"an interrupted update":                        {&Facts{State: stateWith(1, 0), Record: record.Record{Fingerprint: "sha256:x", Intent: begun()}}, false},
		"an interrupted run of a Machine that has run": {&Facts{State: stateWith(1, 0), Provisioned: true, Record: record.Record{Intent: begun()}}, false},
	} {
		if got := tc.facts.Unproven(); got != tc.want {
			t.Errorf("%s: unproven is %t, want %t", name, got, tc.want)
		}
	}
}
