package machine

import (
	"context"
	"strconv"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
)

// updateInstance updates an existing instance and the Machine's view of it.
type updateInstance struct {
	actuator actuators.Actuator
	clock    clock.PassiveClock
}

// Reconcile implements pipeline.Step.
func (u *updateInstance) Reconcile(ctx context.Context, s *scope) (bool, error) {
	if !s.exists && s.uncertain == nil {
		return true, nil
	}
	if err := u.actuator.Update(ctx, s.machine); err != nil {
		u.failed(ctx, s, err)
		return false, nil
	}
	if s.uncertain != nil {
		return false, nil // the next Exists reports it
	}
	setCondition(s.machine, upToDate(corev1.ConditionTrue, "", ""), u.clock.Now())
	s.noteChecked()
	s.updatePhase()
	s.settled = machineapi.Phase(s.machine) == machinev1beta1.PhaseRunning
	if rechecker, ok := u.actuator.(actuators.Rechecker); ok {
		s.RequeueAfter(rechecker.RecheckAfter(s.machine))
	}
	return false, nil
}

// updatePhase sets the phase from the progress of the instance.
func (s *scope) updatePhase() {
	switch {
	case !provisioned(s.machine):
		s.RequeueAfter(requeueInterval)
	case s.machine.Status.NodeRef == nil:
		setPhase(s.machine, machinev1beta1.PhaseProvisioned)
		s.RequeueAfter(requeueInterval)
	default:
		setPhase(s.machine, machinev1beta1.PhaseRunning)
	}
}

// failed reports an error of Update and requeues the Machine. The phase stays, unless the actuator
// asks for Failed. A change that cannot be made in place does not keep an instance from reaching
// its next phase.
func (u *updateInstance) failed(ctx context.Context, s *scope, err error) {
	now := u.clock.Now()
	if uncertain, ok := actuators.AsUncertain(err); ok {
		s.setUpToDateUncertain(uncertain, now)
		return
	}
	if s.uncertain != nil {
		s.restorePhase()
	}
	failIfRequested(s.machine, err)
	if requeue, ok := actuators.AsRequeueAfter(err); ok {
		setInProgress(s.machine, requeue.Reason, now)
		s.wait(requeue)
		return
	}
	f := newActuatorError(err, machinev1beta1.UpdateMachineError)
	phase := machineapi.Phase(s.machine)
	starting := phase == machinev1beta1.PhaseProvisioning || phase == machinev1beta1.PhaseProvisioned
	if f.reason == machinev1beta1.UnsupportedChangeMachineError && s.uncertain == nil && starting {
		s.updatePhase()
	}
	log.FromContext(ctx).Info("Updating the instance failed", "reason", f.reason, "error", err.Error())
	f.setCondition(s.machine, now)
	s.noteChecked()
	s.RequeueAfter(max(requeueInterval, f.retryAfter))
}

// noteChecked tells the MachineDeployment of a Machine that changes in place which generation
// InstanceUpToDate is about. The status is written after annotations, so it must have the result
// already.
func (s *scope) noteChecked() {
	if s.uncertain != nil || s.machine.Annotations[v1beta1.MovedFromAnnotation] == "" {
		return
	}
	stored := machineapi.FindCondition(s.original.Status.Conditions, InstanceUpToDate)
	result := machineapi.FindCondition(s.machine.Status.Conditions, InstanceUpToDate)
	if stored == nil || stored.Status != result.Status || stored.Reason != result.Reason {
		s.RequeueAfter(cacheRetry)
		return
	}
	metav1.SetMetaDataAnnotation(&s.machine.ObjectMeta, v1beta1.CheckedGenerationAnnotation,
		strconv.FormatInt(s.machine.Generation, 10))
}
