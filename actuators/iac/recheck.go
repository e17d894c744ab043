package iac

import (
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	claims "github.com/machine-iac/machine-iac-operator/actuators/addresses"
	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
)

// RecheckAfter implements actuators.Rechecker: the time until the next check, the next look at the instance, or the second look, and
// soon where a claim of an address waits.
func (a *Actuator) RecheckAfter(machine *machinev1beta1.Machine) time.Duration {
	status := readProviderStatus(machine)
	after := a.recheckAfter(machine, &status)
	if claims.Waiting(status.Conditions) && (after == 0 || after > claims.Retry) {
		return claims.Retry
	}
	return after
}

func (a *Actuator) recheckAfter(machine *machinev1beta1.Machine, status *v1alpha1.TerraformMachineProviderStatus) time.Duration {
	next := lifecycle.NewSchedule(machine, status, machine.Status.Addresses, a.interval).WithLook(a.looks.Known(machine.UID)).Next(status)
	if next.IsZero() {
		return 0
	}
	return max(minRequeue, next.Sub(a.clock.Now()))
}
