package iac

import (
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
)

// RecheckAfter implements actuators.Rechecker: the time until the next check, the next look at the instance, or the second look.
func (a *Actuator) RecheckAfter(machine *machinev1beta1.Machine) time.Duration {
	status := readProviderStatus(machine)
	return a.recheckAfter(machine, &status)
}

func (a *Actuator) recheckAfter(machine *machinev1beta1.Machine, status *v1alpha1.TerraformMachineProviderStatus) time.Duration {
	next := lifecycle.NewSchedule(machine, status, machine.Status.Addresses, a.interval).WithLook(a.looks.Known(machine.UID)).Next(status)
	if next.IsZero() {
		return 0
	}
	return max(minRequeue, next.Sub(a.clock.Now()))
}
