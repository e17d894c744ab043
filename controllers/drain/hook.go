package drain

import (
	"context"

	"k8s.io/client-go/tools/events"
)

// checkHooks waits while the Machine has preDrain hooks; removing them triggers a reconcile. The
// machine controller reports hooks in the condition Drainable.
type checkHooks struct {
	pool     *pool
	recorder events.EventRecorder
}

// Reconcile implements pipeline.Step.
func (h *checkHooks) Reconcile(_ context.Context, s *scope) (bool, error) {
	hooks := s.machine.Spec.LifecycleHooks.PreDrain
	if len(hooks) == 0 {
		return true, nil
	}
	h.pool.drop(s.key)
	drainBlocked(s.original, hooks).Send(h.recorder)
	return false, nil
}
