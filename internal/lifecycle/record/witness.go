package record

import (
	"encoding/json"
	"errors"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/internal/installation"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// WitnessAnnotation is written on a Machine before the first run that may create its instance. It
// is a second record of the instance: if the annotation exists and the state Secret does not, the
// state was lost. It is signed, because anyone who may write Machines can write it.
const WitnessAnnotation = state.Prefix + "instance"

// NoInstanceAnnotation confirms that an abandoned run left nothing behind. Its value is the run
// that the Machine's message names.
const NoInstanceAnnotation = state.Prefix + "confirm-no-instance"

// witnessPurpose is the purpose of a witness's signature.
const witnessPurpose = "witness"

// Witness is the content of WitnessAnnotation.
type Witness struct {
	// UID is the Machine's UID. A Machine recreated from a backup carries the UID of another.
	UID string `json:"uid"`
	// IdentityUID is the UID that the instance was created with, or empty if it is the Machine's
	// own.
	IdentityUID types.UID `json:"identityUID,omitempty"`
	// Run is the run that wrote the witness, and Since is when.
	Run   string    `json:"run"`
	Since time.Time `json:"since"`
	// Place is where that run was about to create the instance.
	Place module.Place `json:"place,omitempty"`
	// Adopted reports that the instance was adopted, so that it need not carry the Machine's UID.
	// ProviderID and ID name it.
	Adopted    bool   `json:"adopted,omitempty"`
	ProviderID string `json:"providerID,omitempty"`
	ID         string `json:"id,omitempty"`
	// Destroyed is when the instance was proven to be gone, or nil.
	Destroyed *time.Time `json:"destroyed,omitempty"`
	// Code authenticates the witness for the Machine's namespace.
	Code string `json:"code,omitempty"`

	// Unsigned reports that the installation did not sign the witness. Claims reports that such a
	// witness claims an instance without the Machine's UID.
	Unsigned bool `json:"-"`
	Claims   bool `json:"-"`
}

// WitnessOf returns the witness of a Machine, or nil if it has none or carries another Machine's.
// An unsigned witness may be forged. It then only means that an instance may exist under the
// Machine's own UID.
func WitnessOf(machine *machinev1beta1.Machine, by *installation.Installation) *Witness {
	read := readWitness(machine)
	switch {
	case read == nil || read.UID != string(machine.UID):
		return nil
	case by != nil && by.Signed(read.Code, witnessPurpose, read.signed(machine)...):
		return read
	}
	return &Witness{UID: read.UID, Run: read.Run, Since: read.Since, Place: read.Place, Unsigned: true,
		Claims: read.Adopted || read.IdentityUID != ""}
}

// ClaimsAdoption reports whether a Machine's witness says that its instance was adopted. The claim
// is not authenticated.
func ClaimsAdoption(machine *machinev1beta1.Machine) bool {
	read := readWitness(machine)
	return read != nil && read.Adopted
}

// readWitness decodes the annotation without authenticating it. It returns nil if the annotation is
// missing or unreadable.
func readWitness(machine *machinev1beta1.Machine) *Witness {
	text, ok := machine.Annotations[WitnessAnnotation]
	read := &Witness{}
	if !ok || json.Unmarshal([]byte(text), read) != nil {
		return nil
	}
	return read
}

// UnreadableWitness returns why a Machine's witness cannot be read, or nil if it can or there is none.
func UnreadableWitness(machine *machinev1beta1.Machine) error {
	text, ok := machine.Annotations[WitnessAnnotation]
	if !ok {
		return nil
	}
	var read Witness
	if err := json.Unmarshal([]byte(text), &read); err != nil {
		return err
	}
	if read.UID == "" {
		return errors.New("it has no uid")
	}
	return nil
}

// RestoredFrom returns the UID of the Machine whose witness this one carries, because it was
// recreated from a backup. It returns "" for its own witness or none. The UID is not authenticated.
func RestoredFrom(machine *machinev1beta1.Machine) types.UID {
	if read := readWitness(machine); read != nil && read.UID != string(machine.UID) {
		return types.UID(read.UID)
	}
	return ""
}

// HasInstanceOfItsOwn reports whether a Machine's witness names an instance with its own UID that
// is not destroyed. The claim is not authenticated.
func HasInstanceOfItsOwn(machine *machinev1beta1.Machine) bool {
	w := readWitness(machine)
	return w != nil && w.UID == string(machine.UID) && w.Destroyed == nil &&
		(w.IdentityUID == "" || w.IdentityUID == machine.UID)
}

// SignedFor returns the value of WitnessAnnotation for a Machine, signed by the installation.
func (w Witness) SignedFor(machine *machinev1beta1.Machine, by *installation.Installation) string {
	w.UID = string(machine.UID)
	w.Code = by.Sign(witnessPurpose, w.signed(machine)...)
	return encode(w)
}

// signed returns the fields that Code authenticates.
func (w Witness) signed(machine *machinev1beta1.Machine) []string {
	w.Code = ""
	return []string{machine.Namespace, string(machine.UID), encode(w)}
}
