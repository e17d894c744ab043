package machine

import (
	"context"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/machine-iac/machine-iac-operator/actuators"
)

// createInstance creates an instance that does not exist.
type createInstance struct {
	actuator actuators.Actuator
	clock    clock.PassiveClock
}

// Reconcile implements pipeline.Step.
func (p *createInstance) Reconcile(ctx context.Context, s *scope) (bool, error) {
	if s.exists {
		return true, nil
	}
	err := p.actuator.Create(ctx, s.machine)
	now := p.clock.Now()
	if err == nil {
		setCondition(s.machine, upToDate(corev1.ConditionTrue, "", ""), now)
		s.RequeueAfter(requeueInterval)
		return false, nil
	}
	if requeue, ok := actuators.AsRequeueAfter(err); ok {
		// The error of the last attempt stays in InstanceUpToDate while the next is in progress.
		setCondition(s.machine, instanceNotCreated(requeue.Reason), now)
		s.wait(requeue)
		return false, nil
	}
	if uncertain, ok := actuators.AsUncertain(err); ok {
		s.setUncertain(uncertain, now)
		return false, nil
	}
	setCondition(s.machine, instanceNotCreated(err.Error()), now)
	f := newActuatorError(err, machinev1beta1.CreateMachineError)
	f.setCondition(s.machine, now)
	if actuators.IsInvalidConfiguration(err) {
		fail(s.machine, err)
		return false, nil
	}
	if err := f.retry(s); err != nil {
		return false, fmt.Errorf("creating the instance: %w", err)
	}
	return false, nil
}
