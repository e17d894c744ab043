package lifecycle

import "k8s.io/apimachinery/pkg/types"

const metaIdentityUID = "identity-uid"

// Identity returns the UID that the Machine's instance was made with: what the module gets as var.machine.uid, and what names, tags and
// lookups of the instance have. It is the Machine's own, unless the state was made for a Machine with another UID and given to this one.
func (f *Facts) Identity(own types.UID) types.UID {
	switch {
	case f.Record.IdentityUID != "":
		return f.Record.IdentityUID
	case f.Witness != nil && f.Witness.IdentityUID != "":
		return f.Witness.IdentityUID
	}
	return own
}

// SetIdentityUID records the UID that the instance was made with; none where it is the Machine's own.
func (p Patch) SetIdentityUID(identity, own types.UID) Patch {
	if identity == "" || identity == own {
		p.MetaPatch[metaIdentityUID] = nil
		return p
	}
	return p.set(metaIdentityUID, string(identity))
}
