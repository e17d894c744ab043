package iac

import (
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
)

// VolumeWait implements actuators.VolumeWaiter. It is what the module says that serves the Machine now, also where the instance was made with another
// one. Where none does, there is no wait: Delete reports why nothing can be deleted.
func (a *Actuator) VolumeWait(machine *machinev1beta1.Machine) time.Duration {
	_, serving, err := a.desired.Complete(machine)
	if err != nil || serving == nil {
		return 0
	}
	return serving.VolumeWait()
}
