package pulumi

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/pulumi"
	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

const empty = `{"version":3,"checkpoint":{}}`

func TestWhatALeftoverHasToSave(t *testing.T) {
	stored, err := statefile.Checkpoint{Serial: 7, Lineage: "uid", Raw: []byte(empty)}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		checkpoint []byte
		stored     []byte
		holds      bool
		want       uint64
	}{
		"a run that wrote nothing has nothing":                      {stored: stored, holds: true},
		"what somebody else may have written since is not undone":   {checkpoint: []byte(empty), stored: stored},
		"what was written last follows what is stored":              {checkpoint: []byte(empty), stored: stored, holds: true, want: 8},
		"what was written first follows nothing, under the lineage": {checkpoint: []byte(empty), holds: true, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := abandonedRun{of: pulumi.AbandonedRun{Checkpoint: tc.checkpoint}, lineage: "uid"}.Unsaved(tc.stored, tc.holds)
			if err != nil {
				t.Fatal(err)
			}
			if tc.want == 0 {
				if raw != nil {
					t.Errorf("got %s, want nothing", raw)
				}
				return
			}
			got, err := statefile.ParseCheckpoint(raw)
			if err != nil {
				t.Fatal(err)
			}
			if got.Serial != tc.want || got.Lineage != "uid" {
				t.Errorf("serial %d of lineage %s, want %d of uid", got.Serial, got.Lineage, tc.want)
			}
		})
	}
}

func TestAPlanSaysWhatALookupBringsIn(t *testing.T) {
	report := &engine.Report{
		Changes: []engine.Change{{Address: "a:B.this", Action: engine.ActionUpdate}, {Address: "a:C.disk", Action: engine.ActionCreate}},
		Planned: engine.Summary{Operation: engine.OperationPlan, Add: 1, Change: 1},
	}
	imports(report, map[string]json.RawMessage{"a:B.this": nil, "a:d.io/v1:E.this": nil})
	want := []engine.Change{
		{Address: "a:B.this", Action: engine.ActionUpdate, Import: true},
		{Address: "a:C.disk", Action: engine.ActionCreate},
		{Ref: engine.Ref{Name: "this"}, Address: "a:d.io/v1:E.this", Action: engine.ActionNoOp, Import: true},
	}
	if diff := cmp.Diff(want, report.Changes); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if report.Planned.Import != 2 || !report.CreatesOnly() {
		t.Errorf("planned are %+v, and it only creates: %t; want 2 imports that the list agrees with", report.Planned, report.CreatesOnly())
	}
}

func TestAnObjectThatTheCheckpointHasIsNotMissing(t *testing.T) {
	resource := func(name string, external bool) map[string]any {
		return map[string]any{
			"urn": "urn:pulumi:machine::acme::acme:index:Server::" + name, "type": "acme:index:Server", "custom": true, "external": external,
			"id": name, "outputs": map[string]any{"id": name},
		}
	}
	checkpointOf := func(resources ...any) []byte {
		raw, err := json.Marshal(map[string]any{"version": 3, "checkpoint": map[string]any{"latest": map[string]any{"manifest": map[string]any{}, "resources": resources}}})
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	lookup := checkpointOf(resource("this", true), resource("address", true))
	for name, tc := range map[string]struct {
		checkpoint []byte
		want       []string
	}{
		"nothing is known":       {nil, []string{"acme:index:Server.address", "acme:index:Server.this"}},
		"the address is known":   {checkpointOf(resource("address", false)), []string{"acme:index:Server.this"}},
		"all that there is is":   {checkpointOf(resource("address", false), resource("this", false)), nil},
		"what was only read not": {checkpointOf(resource("this", true)), []string{"acme:index:Server.address", "acme:index:Server.this"}},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := missing(tc.checkpoint, lookup)
			if err != nil {
				t.Fatal(err)
			}
			for _, address := range tc.want {
				if _, there := found[address]; !there {
					t.Errorf("%s is not missing, want it to be", address)
				}
			}
			if len(found) != len(tc.want) {
				t.Errorf("%d objects are missing, want %d", len(found), len(tc.want))
			}
		})
	}
}
