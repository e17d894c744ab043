package machine

import (
	"context"
	"errors"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
)

// errMissing reads as scripts and people know it from the Machine API.
var errMissing = errors.New("can't find created instance")

// failure ends the pass for a Machine that has failed: it stays so until it is deleted, or until its spec is mended where nothing
// had been made. On any other Machine the error fields are somebody's mistake.
type failure struct{}

// Reconcile implements step.
func (f *failure) Reconcile(_ context.Context, s *scope) (bool, error) {
	if machineapi.Phase(s.machine) != machinev1beta1.PhaseFailed {
		forgiveErrors(s.machine)
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
	if uncertain, ok := actuators.AsUncertain(err); ok {
		s.doubt(uncertain, now)
		s.uncertain = uncertain
		return true, nil // Update may find out
	}
	if err != nil {
		setCondition(s.machine, existenceUnknown(err), now)
		takeBackUpToDate(s.machine, machinev1beta1.ErrorCheckingProviderReason, err.Error(), now)
		failWhereAsked(s.machine, err)
		return false, fmt.Errorf("checking whether the instance exists: %w", err)
	}
	s.exists = exists
	switch {
	case exists:
		// The Machine API waits for an Update that succeeds. What exists, exists: nobody who waits for True is kept waiting longer.
		setCondition(s.machine, instanceExists(corev1.ConditionTrue, "", ""), now)
	case provisioned(s.machine):
		setCondition(s.machine, instanceExists(corev1.ConditionFalse, machinev1beta1.InstanceMissingReason,
			"Instance not found on provider: it was created and no longer exists; it was not deleted through this Machine"), now)
		fail(s.machine, errMissing)
		return false, nil
	default:
		if !saysWhyNot(s.machine) { // else provisioning has said, or will say, why
			setCondition(s.machine, notCreated(""), now)
		}
		if machineapi.Phase(s.machine) == "" {
			setPhase(s.machine, machinev1beta1.PhaseProvisioning)
			return false, nil
		}
	}
	return true, nil
}

// saysWhyNot reports whether the Machine tells why it has no instance, or why it cannot be known whether one was left by an earlier try.
func saysWhyNot(machine *machinev1beta1.Machine) bool {
	said := machineapi.FindCondition(machine.Status.Conditions, machinev1beta1.InstanceExistsCondition)
	switch {
	case said == nil:
		return false
	case said.Status == corev1.ConditionUnknown:
		return said.Reason != machinev1beta1.ErrorCheckingProviderReason
	default:
		return said.Status == corev1.ConditionFalse && said.Reason == machinev1beta1.InstanceNotCreatedReason
	}
}

// provisioned reports whether the Machine has once had an instance.
func provisioned(machine *machinev1beta1.Machine) bool {
	return len(machine.Status.Addresses) > 0 || (machine.Spec.ProviderID != nil && *machine.Spec.ProviderID != "")
}
