package offline

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	tfjson "github.com/hashicorp/terraform-json"
)

func TestCopiesOfSensitiveInputsAreMarked(t *testing.T) {
	change := &tfjson.Change{
		Before: map[string]any{"body": "x", "parsed": "tenant: hunter22s", "size": 3.0,
			"list": []any{"a", map[string]any{"b": "hunter22s"}}},
		BeforeSensitive: map[string]any{"body": true},
		After:           map[string]any{"parsed": "none"},
		AfterSensitive:  false,
	}
	hide(&tfjson.Plan{ResourceChanges: []*tfjson.ResourceChange{{Change: change}}}, []string{`{"tenant":"hunter22s"}`})
	want := map[string]any{"body": true, "parsed": true, "list": []any{false, map[string]any{"b": true}}}
	if diff := cmp.Diff(want, change.BeforeSensitive); diff != "" {
		t.Errorf("marks of before (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{}, change.AfterSensitive); diff != "" {
		t.Errorf("marks of after (-want +got):\n%s", diff)
	}
}
