package machine

import (
	"context"
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
	now := p.clock.Now()
	if err == nil {
		setCondition(s.machine, upToDate(corev1.ConditionTrue, "", ""), now)
		s.RequeueAfter(lookAgainAfter)
		return false, nil
	}
	if requeue, ok := actuators.AsRequeueAfter(err); ok {
		// What the last attempt failed of stays shown while the next is under way.
		setCondition(s.machine, notCreated(requeue.Reason), now)
		s.wait(requeue)
		return false, nil
	}
	if uncertain, ok := actuators.AsUncertain(err); ok {
		s.doubt(uncertain, now)
		return false, nil
	}
	setCondition(s.machine, notCreated(err.Error()), now)
	f := faultOf(err, machinev1beta1.CreateMachineError)
	f.show(s.machine, now)
	if actuators.IsInvalidConfiguration(err) {
		fail(s.machine, err)
		return false, nil
	}
	if err := f.retry(s); err != nil {
		return false, fmt.Errorf("creating the instance: %w", err)
	}
	return false, nil
}
