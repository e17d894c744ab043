package tofu

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	tfjson "github.com/hashicorp/terraform-json"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
)

func TestPlannedObjects(t *testing.T) {
	update := tfjson.Actions{tfjson.ActionUpdate}
	plan := &tfjson.Plan{
		ResourceChanges: []*tfjson.ResourceChange{
			{Address: "server.this", Change: &tfjson.Change{
				Actions: update, Importing: &tfjson.Importing{ID: "7"},
				Before:       map[string]any{"id": "7", "size": json.Number("1"), "tags": []any{"a"}, "gone": "x", "was_null": nil, "note": nil, "disks": []any{}},
				After:        map[string]any{"id": "7", "note": "", "disks": nil, "size": json.Number("1"), "tags": []any{"a", "b"}},
				AfterUnknown: map[string]any{"address": true, "id": false},
			}},
			{Address: "port.one", Change: &tfjson.Change{Actions: tfjson.Actions{tfjson.ActionCreate}, After: map[string]any{"name": "p"}}},
			{Address: "disk.one", Change: &tfjson.Change{Actions: tfjson.Actions{tfjson.ActionNoop}, Importing: &tfjson.Importing{ID: "9"}, Before: map[string]any{"id": "9"}}},
		},
		OutputChanges: map[string]*tfjson.Change{
			"provider_id": {After: "cloud:///7", AfterUnknown: false, AfterSensitive: false},
			"later":       {AfterUnknown: true},
			"secret":      {After: "s", AfterSensitive: true},
		},
	}
	got, err := plannedObjects(plan)
	if err != nil {
		t.Fatal(err)
	}
	want := &engine.PlannedObjects{
		Imported: map[string]json.RawMessage{
			"server.this": json.RawMessage(`{"disks":[],"gone":"x","id":"7","note":null,"size":1,"tags":["a"],"was_null":null}`), "disk.one": json.RawMessage(`{"id":"9"}`),
		},
		Changed: map[string][]string{"server.this": {"address", "gone", "tags"}},
		Outputs: map[string]json.RawMessage{"provider_id": json.RawMessage(`"cloud:///7"`)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
