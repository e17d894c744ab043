package machine

import (
	"context"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/machine-iac/machine-iac-operator/actuators"
)

// missingMessage is what scripts and people know from the Machine API.
const missingMessage = "can't find created instance"

// failure ends the pass for a Machine that has failed: it stays so until it is deleted, or until its spec is mended where nothing
// had been made.
type failure struct{}

// Reconcile implements step.
func (f *failure) Reconcile(_ context.Context, s *scope) (bool, error) {
	if phaseOf(s.machine) != machinev1beta1.PhaseFailed {
		return true, nil
	}
	if !mended(s.machine) {
		return false, nil
	}
	setPhase(s.machine, machinev1beta1.PhaseProvisioning)
	return true, nil
}

// existence asks whether the instance exists, and fails a Machine that has lost it.
type existence struct {
	actuator actuators.Actuator
	clock    clock.PassiveClock
}

// Reconcile implements step.
func (e *existence) Reconcile(ctx context.Context, s *scope) (bool, error) {
	exists, err := e.actuator.Exists(ctx, s.machine)
	now := e.clock.Now()
	if err != nil {
		setCondition(s.machine, instanceExists(corev1.ConditionUnknown, machinev1beta1.ErrorCheckingProviderReason,
			fmt.Sprintf("Error checking provider: %v", err)), now)
		return false, fmt.Errorf("checking whether the instance exists: %w", err)
	}
	s.exists = exists
	switch {
	case exists:
		setCondition(s.machine, instanceExists(corev1.ConditionTrue, "", ""), now)
	case provisioned(s.machine):
		setCondition(s.machine, instanceExists(corev1.ConditionFalse, machinev1beta1.InstanceMissingReason,
			"Instance not found on provider: it was there and is gone; it was not removed by this Machine"), now)
		fail(s.machine, nil, missingMessage)
		return false, nil
	case phaseOf(s.machine) == "":
		setCondition(s.machine, instanceExists(corev1.ConditionFalse, machinev1beta1.InstanceNotCreatedReason, "Instance has not been created"), now)
		setPhase(s.machine, machinev1beta1.PhaseProvisioning)
		return false, nil
	}
	return true, nil
}

// provisioned reports whether the Machine has once had an instance.
func provisioned(machine *machinev1beta1.Machine) bool {
	return len(machine.Status.Addresses) > 0 || (machine.Spec.ProviderID != nil && *machine.Spec.ProviderID != "")
}
