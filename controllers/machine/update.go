package machine

import (
	"context"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
)

// upkeep refreshes what is known of an instance that exists.
type upkeep struct {
	actuator actuators.Actuator
	clock    clock.PassiveClock
}

// Reconcile implements step.
func (u *upkeep) Reconcile(ctx context.Context, s *scope) (bool, error) {
	if !s.exists && s.uncertain == nil {
		return true, nil
	}
	if err := u.actuator.Update(ctx, s.machine); err != nil {
		u.failed(ctx, s, err)
		return false, nil
	}
	if s.uncertain != nil {
		return false, nil // Exists is asked again what has become known
	}
	setCondition(s.machine, upToDate(corev1.ConditionTrue, "", ""), u.clock.Now())
	s.arrive()
	if rechecker, ok := u.actuator.(actuators.Rechecker); ok {
		s.RequeueAfter(rechecker.RecheckAfter(s.machine))
	}
	return false, nil
}

// arrive sets the phase by how far the instance has come.
func (s *scope) arrive() {
	switch {
	case !provisioned(s.machine):
		s.RequeueAfter(lookAgainAfter)
	case s.machine.Status.NodeRef == nil:
		setPhase(s.machine, machinev1beta1.PhaseProvisioned)
		s.RequeueAfter(lookAgainAfter)
	default:
		setPhase(s.machine, machinev1beta1.PhaseRunning)
	}
}

// failed leaves the phase as it is, unless the actuator asks for Failed, says why the instance is not as wanted, and looks again. A change that
// cannot be made in place takes nothing from an instance that has come further than its phase.
func (u *upkeep) failed(ctx context.Context, s *scope, err error) {
	now := u.clock.Now()
	if uncertain, ok := actuators.AsUncertain(err); ok {
		s.doubtUpToDate(uncertain, now)
		return
	}
	if s.uncertain != nil {
		s.neverFailed()
	}
	failWhereAsked(s.machine, err)
	if requeue, ok := actuators.AsRequeueAfter(err); ok {
		showProgress(s.machine, requeue.Reason, now)
		s.wait(requeue)
		return
	}
	f := faultOf(err, machinev1beta1.UpdateMachineError)
	phase := machineapi.Phase(s.machine)
	onItsWay := phase == machinev1beta1.PhaseProvisioning || phase == machinev1beta1.PhaseProvisioned
	if f.reason == machinev1beta1.UnsupportedChangeMachineError && s.uncertain == nil && onItsWay {
		s.arrive()
	}
	log.FromContext(ctx).Info("Updating the instance failed", "reason", f.reason, "error", err.Error())
	f.show(s.machine, now)
	s.RequeueAfter(max(lookAgainAfter, f.retryAfter))
}
