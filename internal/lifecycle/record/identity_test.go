package record

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/internal/module/instance"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

func TestIdentityIsRecordedOnlyWhereItIsNotTheMachinesOwn(t *testing.T) {
	for identity, want := range map[types.UID]types.UID{"old": "old", "own": "", "": ""} {
		meta := map[string]string{}
		patched(meta, NewPatch().SetIdentityUID("stale", "own").MetaPatch)
		patched(meta, NewPatch().SetIdentityUID(identity, "own").MetaPatch)
		read, err := Read(meta)
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

func TestRestoredRecord(t *testing.T) {
	meta := map[string]string{"intent": "{}", "orphan-action": "Destroy", "machine": "own"}
	kept := map[string]string{"fingerprint": "f", "orphan-since": "now", "machine": "other", "unknown": "kept"}
	patched(meta, Restored(kept, "old", "own").MetaPatch)
	want := map[string]string{"fingerprint": "f", "unknown": "kept", "identity-uid": "old", "orphan-action": "Destroy", "machine": "own"}
	if diff := cmp.Diff(want, meta); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRestoredWitness(t *testing.T) {
	since := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	now := since.Add(time.Hour)
	carried := Witness{UID: "old", Run: "create", Since: since, Place: placed("r"), Adopted: true, Destroyed: &now}
	for name, tc := range map[string]struct {
		annotation string
		want       Witness
	}{
		"what the Machine carries": {carried.String(), Witness{UID: "own", IdentityUID: "old", Run: "create", Since: since, Place: placed("r"), Adopted: true}},
		"none":                     {"", Witness{UID: "own", IdentityUID: "old", Run: "import", Since: now, Place: placed("z")}},
		"what cannot be read":      {"{", Witness{UID: "own", IdentityUID: "old", Run: "import", Since: now, Place: placed("z")}},
	} {
		t.Run(name, func(t *testing.T) {
			machine := &machinev1beta1.Machine{}
			machine.UID = "own"
			if tc.annotation != "" {
				machine.Annotations = map[string]string{WitnessAnnotation: tc.annotation}
			}
			got := RestoredWitness(machine, "old", "import", now, placed("z"))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			machine.Annotations = map[string]string{WitnessAnnotation: got.String()}
			if HasInstanceOfItsOwn(machine) || RestoredFrom(machine) != "" {
				t.Error("it is taken for one of its own, or of another Machine")
			}
		})
	}
}

func placed(region string) instance.Place { return instance.Place{{Name: "region", Value: region}} }
