package drain

import (
	"context"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
)

// submission hands the next pass to the pool when it is due. The end of the pass wakes the Machine.
type submission struct {
	pool     *pool
	clock    clock.PassiveClock
	recorder events.EventRecorder
	drainer  *drainer
}

// Reconcile implements step.
func (u *submission) Reconcile(ctx context.Context, s *scope) (bool, error) {
	if u.pool.holds(s.key) {
		return true, nil
	}
	if wait := s.record.retry.notBefore.Sub(u.clock.Now()); wait > 0 {
		s.RequeueAfter(wait)
		return true, nil
	}
	logger := log.FromContext(ctx)
	target := targetOf(s.original)
	accepted := u.pool.submit(s.key, func(ctx context.Context) outcome {
		return u.drainer.pass(log.IntoContext(ctx, logger), target)
	})
	if !accepted {
		s.RequeueAfter(askAgainAfter)
		return true, nil
	}
	// A drain that has left a trace in the status went on before this process began.
	if !s.record.proceeds && machineapi.FindCondition(s.original.Status.Conditions, machinev1beta1.MachineDrained) == nil {
		drainProceeds(s.original).Send(u.recorder)
	}
	s.record.proceeds = true
	return true, nil
}
