package record

import (
	"encoding/json"
	"strings"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/internal/module/instance"
)

const (
	// IdentityUIDKey is the key of the UID that an instance was made with.
	IdentityUIDKey = "identity-uid"
	// metaMachineName is the key of the Machine's name.
	metaMachineName = "machine"
	// prefixOrphan starts the keys of what is asked about a state without a Machine.
	prefixOrphan = "orphan"
)

// SetIdentityUID records the UID that the instance was made with; none where it is the Machine's own.
func (p Patch) SetIdentityUID(identity, own types.UID) Patch {
	if identity == "" || identity == own {
		p.MetaPatch[IdentityUIDKey] = nil
		return p
	}
	return p.set(IdentityUIDKey, string(identity))
}

// RestoredFrom returns the UID of the Machine whose annotation this one carries; empty for its own, or none: it was made anew from a backup.
func RestoredFrom(machine *machinev1beta1.Machine) types.UID { return types.UID(restoredFrom(machine)) }

// HasInstanceOfItsOwn reports whether a Machine says that an instance was made for it under its own UID, and is not destroyed.
func HasInstanceOfItsOwn(machine *machinev1beta1.Machine) bool {
	w := WitnessOf(machine)
	return w != nil && w.Destroyed == nil && (w.IdentityUID == "" || w.IdentityUID == machine.UID)
}

// RestoredWitness returns the witness of a Machine that got the state of another, whose instance was made with a UID.
func RestoredWitness(machine *machinev1beta1.Machine, identity types.UID, run string, now time.Time, place instance.Place) Witness {
	w := Witness{Run: run, Since: now.UTC(), Place: place}
	if text, ok := machine.Annotations[WitnessAnnotation]; ok {
		var read Witness
		if json.Unmarshal([]byte(text), &read) == nil && !read.Since.IsZero() {
			w = read
		}
	}
	w.UID, w.IdentityUID, w.Destroyed = string(machine.UID), identity, nil
	return w
}

// Restored returns the patch that records what was kept beside a state, for a Machine that gets it. What was asked about the state while it
// had no Machine is left out.
func Restored(kept map[string]string, identity, own types.UID) Patch {
	p := NewPatch()
	for _, key := range []string{
		metaFingerprint, metaModule, metaIntent, metaCheck, metaRefusal, metaModuleRefusal, metaRepair, metaLast, metaPlace, metaSecondLook, metaAdoption,
	} {
		p.MetaPatch[key] = nil
	}
	for key, value := range kept {
		if key != metaMachineName && !strings.HasPrefix(key, prefixOrphan) {
			p.set(key, value)
		}
	}
	return p.SetIdentityUID(identity, own)
}
