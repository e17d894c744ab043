package machineapi

import (
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
)

const (
	// DeleteAnnotation marks a Machine to be deleted first; any value but the empty one counts.
	DeleteAnnotation = "machine.openshift.io/delete-machine"
	// LegacyDeleteAnnotation is DeleteAnnotation by its old name.
	LegacyDeleteAnnotation = "machine.openshift.io/cluster-api-delete-machine"
)

// MarkedForDeletion reports whether a person, an autoscaler or a controller has marked the Machine to
// be deleted first.
func MarkedForDeletion(machine *machinev1beta1.Machine) bool {
	return machine.Annotations[DeleteAnnotation] != "" || machine.Annotations[LegacyDeleteAnnotation] != ""
}
