package machine

import (
	"context"
	"errors"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// validateSpec rejects a Machine that no actuator can handle.
type validateSpec struct {
	recorder events.EventRecorder
	clock    clock.PassiveClock
}

// Reconcile implements pipeline.Step.
func (v *validateSpec) Reconcile(_ context.Context, s *scope) (bool, error) {
	err := validate(s.machine)
	if err == nil {
		return true, nil
	}
	setCondition(s.machine, upToDate(corev1.ConditionFalse,
		string(machinev1beta1.InvalidConfigurationMachineError), err.Error()), v.clock.Now())
	failedValidate(s.machine, err).Send(v.recorder)
	// No retry: a change of the Machine triggers a reconcile.
	return false, reconcile.TerminalError(fmt.Errorf("validating the Machine: %w", err))
}

func validate(machine *machinev1beta1.Machine) error {
	var problems []error
	if machine.Labels[machinev1beta1.MachineClusterIDLabel] == "" {
		problems = append(problems,
			fmt.Errorf("metadata.labels: %s is missing or empty; set it to the name of the cluster's infrastructure",
				machinev1beta1.MachineClusterIDLabel))
	}
	if machine.Spec.ProviderSpec.Value == nil {
		problems = append(problems, errors.New("spec.providerSpec.value is missing; set it to describe the instance"))
	}
	return errors.Join(problems...)
}
