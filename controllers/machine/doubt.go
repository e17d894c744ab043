package machine

import (
	"cmp"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
)

// doubt shows that nobody can tell whether the instance exists, and asks for another pass. It is no failure: phase and error fields stay
// as they were, also where the actuator has changed them.
func (s *scope) doubt(uncertain *actuators.UncertainError, now time.Time) {
	setCondition(s.machine, instanceExists(corev1.ConditionUnknown, uncertain.Reason, uncertain.Message), now)
	takeBackUpToDate(s.machine, uncertain.Reason, uncertain.Message, now)
	s.waitInDoubt(uncertain)
}

// doubtUpToDate does so of what Update cannot tell.
func (s *scope) doubtUpToDate(uncertain *actuators.UncertainError, now time.Time) {
	setCondition(s.machine, upToDate(corev1.ConditionUnknown, uncertain.Reason, uncertain.Message), now)
	s.waitInDoubt(uncertain)
}

func (s *scope) waitInDoubt(uncertain *actuators.UncertainError) {
	s.neverFailed()
	s.RequeueAfter(cmp.Or(max(0, uncertain.After), lookAgainAfter))
}

// neverFailed takes the phase back that an actuator has set which knows nothing.
func (s *scope) neverFailed() {
	if machineapi.Phase(s.machine) == machinev1beta1.PhaseFailed && machineapi.Phase(s.original) != machinev1beta1.PhaseFailed {
		s.machine.Status.Phase = s.original.Status.Phase
	}
}

// showProgress says of an instance that Update still works on it, in place of that it is up to date: of the Machine as it is now, nobody
// has said so. What an earlier try failed of stays shown meanwhile.
func showProgress(machine *machinev1beta1.Machine, message string, now time.Time) {
	said := machineapi.FindCondition(machine.Status.Conditions, InstanceUpToDate)
	if said != nil && said.Status != corev1.ConditionFalse {
		setCondition(machine, upToDate(corev1.ConditionUnknown, inProgressReason, message), now)
	}
}

// takeBackUpToDate does so before Update was asked. Update says more, so what it has said before stays.
func takeBackUpToDate(machine *machinev1beta1.Machine, reason, message string, now time.Time) {
	said := machineapi.FindCondition(machine.Status.Conditions, InstanceUpToDate)
	if said != nil && said.Status == corev1.ConditionTrue {
		setCondition(machine, upToDate(corev1.ConditionUnknown, reason, message), now)
	}
}
