package machine

import (
	"context"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
)

// hookPresent surfaces on Drainable and Terminable while a lifecycle hook holds the Machine.
const hookPresent = "HookPresent"

// hooks tells what is held by lifecycle hooks.
type hooks struct {
	clock clock.PassiveClock
}

// Reconcile implements step.
func (h *hooks) Reconcile(_ context.Context, s *scope) (bool, error) {
	held, now := s.machine.Spec.LifecycleHooks, h.clock.Now()
	setCondition(s.machine, hookCondition(machinev1beta1.MachineDrainable, "Drain", held.PreDrain), now)
	setCondition(s.machine, hookCondition(machinev1beta1.MachineTerminable, "Terminate", held.PreTerminate), now)
	return true, nil
}

// hookCondition tells whether hooks hold the operation ("Drain", "Terminate") that the condition is about.
func hookCondition(kind machinev1beta1.ConditionType, operation string, hooks []machinev1beta1.LifecycleHook) machinev1beta1.Condition {
	if len(hooks) == 0 {
		return condition(kind, corev1.ConditionTrue, "", "")
	}
	return condition(kind, corev1.ConditionFalse, hookPresent, fmt.Sprintf("%s operation currently blocked by: %+v", operation, hooks))
}

// terminateHook waits while somebody holds the instance with a preTerminate hook; taking the hook off wakes the Machine.
type terminateHook struct{}

// Reconcile implements step.
func (t *terminateHook) Reconcile(_ context.Context, s *scope) (bool, error) {
	return len(s.machine.Spec.LifecycleHooks.PreTerminate) == 0, nil
}
