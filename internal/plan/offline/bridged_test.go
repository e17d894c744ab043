package offline

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPropertiesOfBridgedResources(t *testing.T) {
	schema := block{
		attributes: map[string]attribute{
			"given_name": {optional: true}, "silent_default": {optional: true},
			"computed_too": {optional: true, computed: true}, "required": {},
		},
		blocks: map[string]nested{
			"network_policy": {
				block: block{attributes: map[string]attribute{"inner_name": {optional: true},
					"id": {computed: true}}}}},
	}
	unknown := map[string]any{
		"givenName": true, "silentDefault": true, "computedToo": true, "required": true, "other": true,
		"networkPolicies": []any{map[string]any{"innerName": true, "id": true}, map[string]any{"innerName": true}},
	}
	given := map[string]any{"givenName": "x",
		"networkPolicies": []any{map[string]any{}, map[string]any{"innerName": "y"}}}
	schema.PruneBridged(unknown, given)
	want := map[string]any{
		"givenName": true, "computedToo": true, "required": true, "other": true,
		"networkPolicies": []any{map[string]any{"id": true}, map[string]any{"innerName": true}},
	}
	if diff := cmp.Diff(want, unknown); diff != "" {
		t.Errorf("what is unknown (-want +got):\n%s", diff)
	}
}
