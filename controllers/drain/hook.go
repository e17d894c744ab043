package drain

import (
	"context"

	"k8s.io/client-go/tools/events"
)

// hook waits while somebody holds the drain with a preDrain hook; taking the hook off wakes the Machine. The machine controller shows
// hooks in the condition Drainable.
type hook struct {
	pool     *pool
	recorder events.EventRecorder
}

// Reconcile implements step.
func (h *hook) Reconcile(_ context.Context, s *scope) (bool, error) {
	hooks := s.machine.Spec.LifecycleHooks.PreDrain
	if len(hooks) == 0 {
		return true, nil
	}
	h.pool.drop(s.key)
	drainBlocked(s.original, hooks).Send(h.recorder)
	return false, nil
}
