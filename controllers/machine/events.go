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

// nodeNotLinked reports why a Machine has no Node.
func nodeNotLinked(machine *machinev1beta1.Machine, message string) events.Event {
	return events.Warning(machine, "NodeNotLinked", "LinkNode", message)
}

// writeRefused reports that the API server refuses to update the Machine.
func writeRefused(machine *machinev1beta1.Machine, err error) events.Event {
	return events.Warning(machine, "WriteRefused", "Write",
		"The API server refuses updates of this Machine, so its status is out of date: "+err.Error()+
			". Fix the admission policy or webhook; the operator retries")
}
