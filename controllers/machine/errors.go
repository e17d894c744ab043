package machine

import (
	"cmp"
	"errors"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-iac/machine-iac-operator/actuators"
)

// actuatorError is an error of the actuator's Create, Update or Delete.
type actuatorError struct {
	err    error
	reason machinev1beta1.MachineStatusError
	// retryAfter is when to retry; zero when the error does not say.
	retryAfter time.Duration
}

// newActuatorError returns the reason and retry time of an error. An error without a reason gets
// the reason otherwise.
func newActuatorError(err error, otherwise machinev1beta1.MachineStatusError) actuatorError {
	f := actuatorError{err: err, reason: otherwise}
	var machineError *actuators.MachineError
	if errors.As(err, &machineError) {
		f.reason = cmp.Or(machineError.Reason, otherwise)
		f.retryAfter = machineError.RetryAfter
	}
	return f
}

// setCondition reports the error in InstanceUpToDate and not in the error fields: to autoscalers
// and MachineSets these mean that the Machine has failed for good.
func (f actuatorError) setCondition(machine *machinev1beta1.Machine, now time.Time) {
	setCondition(machine, upToDate(corev1.ConditionFalse, string(f.reason), f.err.Error()), now)
}

// retry requeues the Machine when the error says, and else returns the error, so that the queue
// backs off.
func (f actuatorError) retry(s *scope) error {
	if f.retryAfter > 0 {
		s.RequeueAfter(f.retryAfter)
		return nil
	}
	return f.err
}

// wait requeues the Machine when the actuator asks for it.
func (s *scope) wait(requeue *actuators.RequeueAfterError) {
	s.RequeueAfter(cmp.Or(max(0, requeue.After), requeueInterval))
}
