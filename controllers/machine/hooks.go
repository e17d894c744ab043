package machine

import (
	"context"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
)

// hookPresent surfaces on Drainable and Terminable while a lifecycle hook blocks the operation.
const hookPresent = "HookPresent"

// reportHooks sets the conditions Drainable and Terminable from the lifecycle hooks.
type reportHooks struct {
	clock clock.PassiveClock
}

// Reconcile implements pipeline.Step.
func (h *reportHooks) Reconcile(_ context.Context, s *scope) (bool, error) {
	held, now := s.machine.Spec.LifecycleHooks, h.clock.Now()
	setCondition(s.machine, hookCondition(machinev1beta1.MachineDrainable, "Drain", held.PreDrain), now)
	setCondition(s.machine, hookCondition(machinev1beta1.MachineTerminable, "Terminate", held.PreTerminate), now)
	return true, nil
}

// hookCondition returns the condition for an operation ("Drain", "Terminate") and the hooks that
// block it.
func hookCondition(kind machinev1beta1.ConditionType, operation string,
	hooks []machinev1beta1.LifecycleHook) machinev1beta1.Condition {
	if len(hooks) == 0 {
		return condition(kind, corev1.ConditionTrue, "", "")
	}
	return condition(kind, corev1.ConditionFalse, hookPresent,
		fmt.Sprintf("%s operation currently blocked by: %+v", operation, hooks))
}

// waitForTerminateHooks waits while the Machine has preTerminate hooks; removing them triggers a
// reconcile.
type waitForTerminateHooks struct{}

// Reconcile implements pipeline.Step.
func (t *waitForTerminateHooks) Reconcile(_ context.Context, s *scope) (bool, error) {
	return len(s.machine.Spec.LifecycleHooks.PreTerminate) == 0, nil
}
