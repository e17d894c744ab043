package machine

import (
	"context"
	"errors"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// validation refuses a Machine that no actuator could serve.
type validation struct {
	recorder events.EventRecorder
}

// Reconcile implements step.
func (v *validation) Reconcile(_ context.Context, s *scope) (bool, error) {
	err := validate(s.machine)
	if err == nil {
		return true, nil
	}
	failedValidate(s.machine, err).Send(v.recorder)
	// Only a change of the Machine helps, and that is an event.
	return false, reconcile.TerminalError(fmt.Errorf("validating the Machine: %w", err))
}

func validate(machine *machinev1beta1.Machine) error {
	var problems []error
	if machine.Labels[machinev1beta1.MachineClusterIDLabel] == "" {
		problems = append(problems, fmt.Errorf("metadata.labels: %s is missing or empty; set it to the name of the cluster's infrastructure", machinev1beta1.MachineClusterIDLabel))
	}
	if machine.Spec.ProviderSpec.Value == nil {
		problems = append(problems, errors.New("spec.providerSpec.value is missing; set it to describe the instance"))
	}
	return errors.Join(problems...)
}
