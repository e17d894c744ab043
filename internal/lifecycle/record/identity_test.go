package record

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/internal/installation"
	"github.com/machine-iac/machine-iac-operator/internal/module"
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

func TestAWitnessThatIsNotSignedSaysOnlyThatThereMayBeAnInstance(t *testing.T) {
	since := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	by, other := installation.Generate(), installation.Generate()
	machineOf := func(namespace string, uid types.UID) *machinev1beta1.Machine {
		machine := &machinev1beta1.Machine{}
		machine.Namespace, machine.UID = namespace, uid
		return machine
	}
	own := machineOf("a", "own")
	whole := Witness{UID: "own", IdentityUID: "old", Run: "create", Since: since, Place: placed("r"), Adopted: true, ProviderID: "x://1", Destroyed: &since}
	signed := whole.SignedFor(own, by)
	reduced := &Witness{UID: "own", Run: "create", Since: since, Place: placed("r"), Unsigned: true, Claims: true}
	plain := Witness{Run: "create", Since: since}
	for name, tc := range map[string]struct {
		machine    *machinev1beta1.Machine
		annotation string
		by         *installation.Installation
		want       *Witness
	}{
		"signed":                             {own, signed, by, &whole},
		"nobody's key is known":              {own, signed, nil, reduced},
		"signed by another installation":     {own, whole.SignedFor(own, other), by, reduced},
		"edited after it was signed":         {own, strings.Replace(signed, `"old"`, `"new"`, 1), by, reduced},
		"copied from another Machine":        {machineOf("a", "mine"), strings.Replace(signed, `"own"`, `"mine"`, 1), by, &Witness{UID: "mine", Run: "create", Since: since, Place: placed("r"), Unsigned: true, Claims: true}},
		"copied from another namespace":      {machineOf("b", "own"), signed, by, reduced},
		"not signed, without further claims": {own, `{"uid":"own","run":"create","since":"2026-03-01T12:00:00Z"}`, by, &Witness{UID: "own", Run: "create", Since: since, Unsigned: true}},
		"of another Machine":                 {machineOf("a", "anew"), plain.SignedFor(own, by), by, nil},
		"no JSON":                            {own, "{", by, nil},
	} {
		t.Run(name, func(t *testing.T) {
			tc.machine = tc.machine.DeepCopy()
			tc.machine.Annotations = map[string]string{WitnessAnnotation: tc.annotation}
			got := WitnessOf(tc.machine, tc.by)
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(Witness{}, "Code")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func placed(region string) module.Place { return module.Place{{Name: "region", Value: region}} }
