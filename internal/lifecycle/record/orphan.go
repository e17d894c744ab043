package record

import (
	"fmt"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// OrphanActionAnnotation on a state's head requests an action for a state whose Machine is gone:
// OrphanDestroy.
const OrphanActionAnnotation = state.Prefix + metaOrphanAction

// OrphanDestroy is the value of OrphanActionAnnotation that destroys everything in the state.
const OrphanDestroy = "Destroy"

// MachineSetAnnotation on a state's head names the MachineSet that its Machine belongs to, or
// belonged to.
const MachineSetAnnotation = state.Prefix + metaMachineSet

// Keys of the records about a state whose Machine is gone.
const (
	metaOrphanAction = "orphan-action"
	metaOrphaned     = "orphaned"
	metaMachineSet   = "machineset"
)

// Orphan is the record of a state whose Machine is gone.
type Orphan struct {
	// Mark is written when the state is first seen without its Machine. It is nil before that, and
	// once a Machine exists again.
	Mark *OrphanMark
	// Action is the action that a person requested, or empty.
	Action string
	// MachineSet is the owner of its Machine, or nil if there was none or it was not recorded.
	MachineSet *MachineSetRef
}

// OrphanMark is the durable mark on a state whose Machine is gone.
type OrphanMark struct {
	// Since is when the state was first seen without its Machine.
	Since time.Time `json:"since"`
	// Destroy is when the manager's policy decided to destroy it, or zero.
	Destroy time.Time `json:"destroy,omitzero"`
	// Begun reports whether a destroy began before the Machine was gone. The destroy is repeated
	// until it succeeds, because a failed run leaves no intent.
	Begun bool `json:"begun,omitempty"`
	// Problem says why a destroy has not succeeded so far.
	Problem string `json:"problem,omitempty"`
}

// MachineSetRef names a MachineSet.
type MachineSetRef struct {
	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
}

// ReadOrphan reads the orphan record from a head's metadata.
func ReadOrphan(meta map[string]string) (Orphan, error) {
	o := Orphan{Action: meta[metaOrphanAction]}
	var err error
	if o.Mark, err = decode[OrphanMark](meta, metaOrphaned); err != nil {
		return Orphan{}, err
	}
	o.MachineSet, err = decode[MachineSetRef](meta, metaMachineSet)
	return o, err
}

// Check returns an error for an unknown action.
func (o Orphan) Check() error {
	if o.Action != "" && o.Action != OrphanDestroy {
		return fmt.Errorf("annotation %s is %q; set it to %s, or remove it", OrphanActionAnnotation, o.Action, OrphanDestroy)
	}
	return nil
}

// SetOrphanMark records that the Machine is gone.
func (p Patch) SetOrphanMark(m OrphanMark) { p.set(metaOrphaned, encode(m)) }

// ClearOrphan records that the state has a Machine again, and drops requests for its orphan.
func (p Patch) ClearOrphan() { p.MetaPatch[metaOrphaned], p.MetaPatch[metaOrphanAction] = nil, nil }

// MachineSetOf returns the value of MachineSetAnnotation for a Machine, or "" if its controller is
// not a MachineSet.
func MachineSetOf(machine metav1.Object) string {
	owner := metav1.GetControllerOf(machine)
	if owner == nil || owner.Kind != "MachineSet" {
		return ""
	}
	return encode(MachineSetRef{Name: owner.Name, UID: owner.UID})
}

// Names returns how a Machine refers to the instance of another Machine that is gone: by the
// witness that it was copied with, or by its provider ID. It returns "" if it does not.
func Names(machine *machinev1beta1.Machine, gone types.UID, providerID string) string {
	switch {
	case machine.UID == gone:
		return "" // its own instance
	case RestoredFrom(machine) == gone:
		return "it was recreated from the Machine with UID " + string(gone)
	case providerID != "" && machine.Spec.ProviderID != nil && *machine.Spec.ProviderID == providerID:
		return "its spec.providerID is " + providerID
	}
	return ""
}
