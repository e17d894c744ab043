package machine

import (
	"context"
	"errors"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/machine-iac/machine-iac-operator/actuators"
)

// provisioning has the instance made that does not exist yet.
type provisioning struct {
	actuator actuators.Actuator
	clock    clock.PassiveClock
}

// Reconcile implements step.
func (p *provisioning) Reconcile(ctx context.Context, s *scope) (bool, error) {
	if s.exists {
		return true, nil
	}
	err := p.actuator.Create(ctx, s.machine)
	if err == nil {
		s.lookAgain(lookAgainAfter)
		return false, nil
	}
	message := "Instance has not been created"
	requeue, waiting := actuators.AsRequeueAfter(err)
	if waiting {
		s.lookAgain(requeue.After)
		message += ": " + requeue.Reason
	} else {
		message += ": " + err.Error()
	}
	setCondition(s.machine, instanceExists(corev1.ConditionFalse, machinev1beta1.InstanceNotCreatedReason, message), p.clock.Now())
	if waiting {
		return false, nil
	}
	return false, p.failed(s, err)
}

// failed decides what an error of Create means for the Machine.
func (p *provisioning) failed(s *scope, err error) error {
	var machineError *actuators.MachineError
	if !errors.As(err, &machineError) {
		return fmt.Errorf("creating the instance: %w", err)
	}
	if actuators.IsInvalidConfiguration(err) {
		fail(s.machine, &machineError.Reason, machineError.Message)
		return nil
	}
	if machineError.RetryAfter > 0 {
		s.lookAgain(machineError.RetryAfter)
		return nil
	}
	return fmt.Errorf("creating the instance: %w", err)
}
