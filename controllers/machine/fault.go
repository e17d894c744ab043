package machine

import (
	"cmp"
	"errors"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-iac/machine-iac-operator/actuators"
)

// fault is what went wrong when the actuator was to make, refresh or remove the instance.
type fault struct {
	err    error
	reason machinev1beta1.MachineStatusError
	// retryAfter is how long a retry is no use; zero when the error does not say.
	retryAfter time.Duration
}

// faultOf reads an error of the actuator. The reason of an error that has none of its own is otherwise.
func faultOf(err error, otherwise machinev1beta1.MachineStatusError) fault {
	f := fault{err: err, reason: otherwise}
	var machineError *actuators.MachineError
	if errors.As(err, &machineError) {
		f.reason = cmp.Or(machineError.Reason, otherwise)
		f.retryAfter = machineError.RetryAfter
	}
	return f
}

// show tells the fault in a condition, and not in the error fields: autoscalers and MachineSets take those for the end of the Machine.
func (f fault) show(machine *machinev1beta1.Machine, now time.Time) {
	setCondition(machine, upToDate(corev1.ConditionFalse, string(f.reason), f.err.Error()), now)
}

// retry asks for another pass when the error says, and answers the error for the queue to set the pace when it does not.
func (f fault) retry(s *scope) error {
	if f.retryAfter > 0 {
		s.RequeueAfter(f.retryAfter)
		return nil
	}
	return f.err
}

// wait asks for another pass when an actuator that is not done yet says.
func (s *scope) wait(requeue *actuators.RequeueAfterError) {
	s.RequeueAfter(cmp.Or(max(0, requeue.After), lookAgainAfter))
}
