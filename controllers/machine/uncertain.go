package machine

import (
	"cmp"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
)

// setUncertain sets InstanceExists to Unknown and requeues the Machine. This is not a failure:
// phase and error fields stay, even if the actuator has changed them.
func (s *scope) setUncertain(uncertain *actuators.UncertainError, now time.Time) {
	setCondition(s.machine, instanceExists(corev1.ConditionUnknown, uncertain.Reason, uncertain.Message), now)
	clearUpToDate(s.machine, uncertain.Reason, uncertain.Message, now)
	s.requeueUncertain(uncertain)
}

// setUpToDateUncertain does the same for InstanceUpToDate after an uncertain Update.
func (s *scope) setUpToDateUncertain(uncertain *actuators.UncertainError, now time.Time) {
	setCondition(s.machine, upToDate(corev1.ConditionUnknown, uncertain.Reason, uncertain.Message), now)
	s.requeueUncertain(uncertain)
}

func (s *scope) requeueUncertain(uncertain *actuators.UncertainError) {
	s.restorePhase()
	s.RequeueAfter(cmp.Or(max(0, uncertain.After), requeueInterval))
}

// restorePhase undoes the phase Failed of an actuator that is uncertain.
func (s *scope) restorePhase() {
	if machineapi.Phase(s.machine) == machinev1beta1.PhaseFailed &&
		machineapi.Phase(s.original) != machinev1beta1.PhaseFailed {
		s.machine.Status.Phase = s.original.Status.Phase
	}
}

// setInProgress sets InstanceUpToDate from True to Unknown while Update is in progress, because
// True referred to an earlier spec. The error of an earlier attempt stays.
func setInProgress(machine *machinev1beta1.Machine, message string, now time.Time) {
	current := machineapi.FindCondition(machine.Status.Conditions, InstanceUpToDate)
	if current != nil && current.Status != corev1.ConditionFalse {
		setCondition(machine, upToDate(corev1.ConditionUnknown, inProgressReason, message), now)
	}
}

// clearUpToDate sets InstanceUpToDate from True to Unknown if Update was not called. Other results
// of Update stay.
func clearUpToDate(machine *machinev1beta1.Machine, reason, message string, now time.Time) {
	current := machineapi.FindCondition(machine.Status.Conditions, InstanceUpToDate)
	if current != nil && current.Status == corev1.ConditionTrue {
		setCondition(machine, upToDate(corev1.ConditionUnknown, reason, message), now)
	}
}
