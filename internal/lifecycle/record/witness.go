package record

import (
	"encoding/json"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/internal/module/instance"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// WitnessAnnotation is written on a Machine before the first run that may make its instance. It is the second witness of the instance
// beside the state's Secret: where it is there and the Secret is not, the state is missing.
const WitnessAnnotation = state.Prefix + "instance"

// NoInstanceAnnotation is how a person confirms that an abandoned run has left nothing: its value is the run that the Machine's message names.
const NoInstanceAnnotation = state.Prefix + "confirm-no-instance"

// Witness is the content of WitnessAnnotation.
type Witness struct {
	// UID is the Machine's. A Machine that was made anew from a backup carries another's.
	UID string `json:"uid"`
	// IdentityUID is the UID that the instance was made with; empty where it is the Machine's own.
	IdentityUID types.UID `json:"identityUID,omitempty"`
	// Run is the run that wrote it, Since when.
	Run   string    `json:"run"`
	Since time.Time `json:"since"`
	// Place is where that run was about to make the instance.
	Place instance.Place `json:"place,omitempty"`
	// Adopted says that something else has made the instance: it does not bear the Machine's UID.
	Adopted bool `json:"adopted,omitempty"`
	// Destroyed is when the instance was proven to be gone; nil before.
	Destroyed *time.Time `json:"destroyed,omitempty"`
}

// WitnessOf reads the annotation. One of another Machine's UID is no witness, nor is one that cannot be read: it is written again.
func WitnessOf(machine *machinev1beta1.Machine) *Witness {
	text, ok := machine.Annotations[WitnessAnnotation]
	if !ok {
		return nil
	}
	var read Witness
	if json.Unmarshal([]byte(text), &read) != nil || read.UID != string(machine.UID) {
		return nil
	}
	return &read
}

// restoredFrom returns the UID of the Machine whose witness this one carries, empty for none: it was made anew from a backup.
func restoredFrom(machine *machinev1beta1.Machine) string {
	var read Witness
	if json.Unmarshal([]byte(machine.Annotations[WitnessAnnotation]), &read) != nil || read.UID == string(machine.UID) {
		return ""
	}
	return read.UID
}

// String returns the content of WitnessAnnotation.
func (w Witness) String() string { return encode(w) }
