package machine

import (
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/internal/cluster/events"
)

// waitsForVolumes reports that the deletion waits for volumes.
func waitsForVolumes(machine *machinev1beta1.Machine, message string) events.Event {
	return events.Normal(machine, "WaitingForVolumes", "Delete", message)
}

// volumesStay reports that the deletion goes on although volumes are attached.
func volumesStay(machine *machinev1beta1.Machine, message string) events.Event {
	return events.Warning(machine, "VolumesStillAttached", "Delete", message)
}

// failedValidate reports that the Machine is invalid.
func failedValidate(machine *machinev1beta1.Machine, err error) events.Event {
	return events.Warning(machine, "FailedValidate", "Validate", err.Error())
}
