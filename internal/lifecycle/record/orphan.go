package record

import (
	"fmt"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// OrphanActionAnnotation on a state's head is how a person says what becomes of a state whose Machine is gone: OrphanDestroy.
const OrphanActionAnnotation = state.Prefix + metaOrphanAction

// OrphanDestroy is the value of OrphanActionAnnotation that has all destroyed that the state lists.
const OrphanDestroy = "Destroy"

// MachineSetAnnotation on a state's head says which MachineSet its Machine belongs to, or belonged to.
const MachineSetAnnotation = state.Prefix + metaMachineSet

// Keys of what is recorded of a state whose Machine is gone, and what is left of that.
const (
	metaOrphanAction = "orphan-action"
	metaOrphaned     = "orphaned"
	metaMachineSet   = "machineset"
)

// Orphan is what a state's head says of it as one whose Machine is gone.
type Orphan struct {
	// Mark is written when the state is first seen without its Machine; nil before, and once there is a Machine again.
	Mark *OrphanMark
	// Action is what a person requested; empty for nothing.
	Action string
	// MachineSet is where its Machine belonged to; nil for none, or where none is recorded.
	MachineSet *MachineSetRef
}

// OrphanMark is recorded durably of a state whose Machine is gone.
type OrphanMark struct {
	// Since is when it was first seen so.
	Since time.Time `json:"since"`
	// Destroy is when the policy of the manager decided to destroy it; zero for not.
	Destroy time.Time `json:"destroy,omitzero"`
	// Begun is whether a destroy had begun before the Machine was gone. It is repeated until it succeeds: a run that fails leaves no intent.
	Begun bool `json:"begun,omitempty"`
	// Problem says why a destroy did not succeed so far, for people.
	Problem string `json:"problem,omitempty"`
}

// MachineSetRef names a MachineSet.
type MachineSetRef struct {
	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
}

// ReadOrphan reads what a head says.
func ReadOrphan(meta map[string]string) (Orphan, error) {
	o := Orphan{Action: meta[metaOrphanAction]}
	var err error
	if o.Mark, err = decode[OrphanMark](meta, metaOrphaned); err != nil {
		return Orphan{}, err
	}
	o.MachineSet, err = decode[MachineSetRef](meta, metaMachineSet)
	return o, err
}

// Check returns an error for an action that there is not.
func (o Orphan) Check() error {
	if o.Action != "" && o.Action != OrphanDestroy {
		return fmt.Errorf("annotation %s is %q; set it to %s, or remove it", OrphanActionAnnotation, o.Action, OrphanDestroy)
	}
	return nil
}

// SetOrphanMark records that the Machine is gone.
func (p Patch) SetOrphanMark(m OrphanMark) { p.set(metaOrphaned, encode(m)) }

// ClearOrphan records that the state has its Machine, and drops what was requested for one that has not.
func (p Patch) ClearOrphan() { p.MetaPatch[metaOrphaned], p.MetaPatch[metaOrphanAction] = nil, nil }

// MachineSetOf returns the content of MachineSetAnnotation for the controller of a Machine; empty where that is no MachineSet.
func MachineSetOf(machine metav1.Object) string {
	owner := metav1.GetControllerOf(machine)
	if owner == nil || owner.Kind != "MachineSet" {
		return ""
	}
	return encode(MachineSetRef{Name: owner.Name, UID: owner.UID})
}

// Names returns how a Machine names the instance of another, which is gone: by the witness that it was copied with, or by its provider ID;
// empty where it does not.
func Names(machine *machinev1beta1.Machine, gone types.UID, providerID string) string {
	switch {
	case machine.UID == gone:
		return "" // its own
	case restoredFrom(machine) == string(gone):
		return "it was made anew from the one with UID " + string(gone)
	case providerID != "" && machine.Spec.ProviderID != nil && *machine.Spec.ProviderID == providerID:
		return "its spec.providerID is " + providerID
	}
	return ""
}
