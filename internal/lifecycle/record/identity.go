package record

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// IdentityUIDKey is the key of the UID that an instance was created with.
	IdentityUIDKey = "identity-uid"
	// metaMachineName is the key of the Machine's name.
	metaMachineName = "machine"
	// prefixOrphan starts the keys of requests about a state without a Machine.
	prefixOrphan = "orphan"
)

// SetIdentityUID records the UID that the instance was created with, unless it is the Machine's
// own.
func (p Patch) SetIdentityUID(identity, own types.UID) Patch {
	if identity == "" || identity == own {
		p.MetaPatch[IdentityUIDKey] = nil
		return p
	}
	return p.set(IdentityUIDKey, string(identity))
}

// Restored returns a patch with the records of a backed-up state, for the Machine that receives it.
// It drops requests that were made while the state had no Machine.
func Restored(kept map[string]string, identity, own types.UID) Patch {
	p := NewPatch()
	for _, key := range []string{
		metaFingerprint, metaModule, metaIntent, metaCheck, metaRefusal, metaModuleRefusal, metaRepair, metaLast, metaPlace,
		metaSecondLook, metaAdoption, metaProviders,
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
