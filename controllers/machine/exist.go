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

// instanceMissing is the text of the Machine API Operator, which scripts match. The provider status
// says what was found.
const instanceMissing = "Instance not found on provider"

// errMissing has the text of the Machine API Operator, which scripts match.
var errMissing = errors.New("can't find created instance")

// checkFailed ends the reconcile of a Machine in phase Failed. It stays Failed until it is deleted,
// or until its spec changes where no instance was created. On any other Machine the error fields
// are cleared.
type checkFailed struct{}

// Reconcile implements pipeline.Step.
func (f *checkFailed) Reconcile(_ context.Context, s *scope) (bool, error) {
	if machineapi.Phase(s.machine) != machinev1beta1.PhaseFailed {
		clearErrors(s.machine)
		if provisioned(s.machine) {
			// Not before the phase is written: the annotation is what a Machine leaves Failed by.
			delete(s.machine.Annotations, failedGenerationAnnotation)
		}
		return true, nil
	}
	if !specChanged(s.machine) {
		return false, nil
	}
	setPhase(s.machine, machinev1beta1.PhaseProvisioning)
	return true, nil
}

// checkExists checks whether the instance exists, and fails a Machine whose instance is missing.
type checkExists struct {
	actuator actuators.Actuator
	clock    clock.PassiveClock
}

// Reconcile implements pipeline.Step.
func (e *checkExists) Reconcile(ctx context.Context, s *scope) (bool, error) {
	exists, err := e.actuator.Exists(ctx, s.machine)
	now := e.clock.Now()
	if uncertain, ok := actuators.AsUncertain(err); ok {
		s.setUncertain(uncertain, now)
		s.uncertain = uncertain
		return true, nil // Update may resolve it
	}
	if err != nil {
		setCondition(s.machine, instanceExistsUnknown(err), now)
		clearUpToDate(s.machine, machinev1beta1.ErrorCheckingProviderReason, err.Error(), now)
		failIfRequested(s.machine, err)
		return false, fmt.Errorf("checking whether the instance exists: %w", err)
	}
	s.exists = exists
	switch {
	case exists:
		// The Machine API Operator sets this only after a successful Update; setting it now avoids
		// a delay.
		setCondition(s.machine, instanceExists(corev1.ConditionTrue, "", ""), now)
	case provisioned(s.machine):
		setCondition(s.machine, instanceExists(corev1.ConditionFalse, machinev1beta1.InstanceMissingReason,
			instanceMissing), now)
		fail(s.machine, errMissing)
		return false, nil
	default:
		if !explainsMissing(s.machine) { // otherwise createInstance has reported why
			setCondition(s.machine, instanceNotCreated(""), now)
		}
		if machineapi.Phase(s.machine) == "" {
			setPhase(s.machine, machinev1beta1.PhaseProvisioning) // written with what Create reports
		}
	}
	return true, nil
}

// explainsMissing reports whether InstanceExists already says why there is no instance, or why it
// is unknown whether an earlier attempt left one.
func explainsMissing(machine *machinev1beta1.Machine) bool {
	current := machineapi.FindCondition(machine.Status.Conditions, machinev1beta1.InstanceExistsCondition)
	switch {
	case current == nil:
		return false
	case current.Status == corev1.ConditionUnknown:
		return current.Reason != machinev1beta1.ErrorCheckingProviderReason
	default:
		return current.Status == corev1.ConditionFalse && current.Reason == machinev1beta1.InstanceNotCreatedReason
	}
}

// provisioned reports whether the Machine has ever had an instance.
func provisioned(machine *machinev1beta1.Machine) bool {
	return len(machine.Status.Addresses) > 0 || (machine.Spec.ProviderID != nil && *machine.Spec.ProviderID != "")
}
