package lifecycle

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/internal/state"
)

func TestIdentity(t *testing.T) {
	for name, tc := range map[string]struct {
		facts Facts
		want  types.UID
	}{
		"the Machine's own":                             {Facts{Witness: &Witness{UID: "own"}}, "own"},
		"that of the state":                             {Facts{Record: Record{IdentityUID: "old"}, Witness: &Witness{UID: "own"}}, "old"},
		"that of the Machine, where the state is lost":  {Facts{Witness: &Witness{UID: "own", IdentityUID: "old"}}, "old"},
		"that of the state, where both have one":        {Facts{Record: Record{IdentityUID: "old"}, Witness: &Witness{UID: "own", IdentityUID: "older"}}, "old"},
		"the Machine's own, where nothing is there yet": {Facts{}, "own"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.facts.Identity("own"); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestIdentityIsRecordedOnlyWhereItIsNotTheMachinesOwn(t *testing.T) {
	for identity, want := range map[types.UID]types.UID{"old": "old", "own": "", "": ""} {
		meta := map[string]string{}
		patched(meta, NewPatch().SetIdentityUID("stale", "own").MetaPatch)
		patched(meta, NewPatch().SetIdentityUID(identity, "own").MetaPatch)
		read, err := ReadRecord(meta)
		if err != nil || read.IdentityUID != want {
			t.Errorf("of %q: %q, %v; want %q", identity, read.IdentityUID, err, want)
		}
	}
}

// patched applies a patch as the store does.
func patched(meta map[string]string, patch state.MetaPatch) {
	for key, value := range patch {
		if value == nil {
			delete(meta, key)
			continue
		}
		meta[key] = *value
	}
}
