package pipeline

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// firstRetry is the delay before the first retry of a failed reconcile, as in controller-runtime.
const firstRetry = 5 * time.Millisecond

// retries is a rate limiter that doubles the delay with each failed retry, up to a limit. Reconciles
// that events cause before the retry is due do not count: a burst of events would otherwise delay
// the retry by minutes.
type retries struct {
	clock clock.PassiveClock
	limit time.Duration

	mu    sync.Mutex
	items map[reconcile.Request]retryState
}

// retryState is how often an object's reconcile has failed, and when the next retry is due.
type retryState struct {
	failures int
	due      time.Time
}

var _ workqueue.TypedRateLimiter[reconcile.Request] = &retries{}

// newRetries returns the rate limiter of a controller.
func newRetries(passive clock.PassiveClock, limit time.Duration) *retries {
	return &retries{clock: passive, limit: limit, items: map[reconcile.Request]retryState{}}
}

// When implements workqueue.TypedRateLimiter.
func (r *retries) When(item reconcile.Request) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	state, now := r.items[item], r.clock.Now()
	if remaining := state.due.Sub(now); remaining > 0 {
		return remaining
	}
	delay := firstRetry
	for range state.failures {
		if delay *= 2; delay >= r.limit {
			delay = r.limit
			break
		}
	}
	r.items[item] = retryState{failures: state.failures + 1, due: now.Add(delay)}
	return delay
}

// Forget implements workqueue.TypedRateLimiter.
func (r *retries) Forget(item reconcile.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.items, item)
}

// NumRequeues implements workqueue.TypedRateLimiter.
func (r *retries) NumRequeues(item reconcile.Request) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.items[item].failures
}
