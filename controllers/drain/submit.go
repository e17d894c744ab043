package drain

import (
	"context"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
)

// submitAttempt submits the next attempt to the pool when it is due. Its end triggers a reconcile.
type submitAttempt struct {
	pool     *pool
	clock    clock.PassiveClock
	recorder events.EventRecorder
	drainer  *drainer
}

// Reconcile implements pipeline.Step.
func (u *submitAttempt) Reconcile(ctx context.Context, s *scope) (bool, error) {
	if u.pool.holds(s.key) {
		return true, nil
	}
	if wait := s.progress.retry.notBefore.Sub(u.clock.Now()); wait > 0 {
		s.RequeueAfter(wait)
		return true, nil
	}
	logger := log.FromContext(ctx)
	target, newest, deleted := targetOf(s.original), s.newest(), s.original.DeletionTimestamp.UTC().Format(time.RFC3339)
	accepted := u.pool.submit(s.key, func(ctx context.Context) outcome {
		o := u.drainer.attempt(log.IntoContext(ctx, logger), target, newest)
		if o.left > 0 {
			o.message += "; the Machine was deleted at " + deleted
		}
		o.target = target
		return o
	})
	if !accepted {
		s.RequeueAfter(waitInterval)
		return true, nil
	}
	// With the condition set, the drain began before this process did.
	if !s.progress.announced && machineapi.FindCondition(s.original.Status.Conditions,
		machinev1beta1.MachineDrained) == nil {
		drainProceeds(s.original).Send(u.recorder)
	}
	s.progress.announced = true
	return true, nil
}
