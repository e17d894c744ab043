package pipeline

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestRetriesAreCappedAndEventsAreNoFailures(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	limiter := newRetries(now, 30*time.Second)
	set := reconcile.Request{NamespacedName: types.NamespacedName{Name: "set"}}
	longest := time.Duration(0)
	for range 40 { // retries that are due
		delay := limiter.When(set)
		if delay < longest || delay > 30*time.Second {
			t.Fatalf("got a delay of %s after %s, want a longer one of at most 30s", delay, longest)
		}
		longest = delay
		now.SetTime(now.Now().Add(delay))
	}
	if longest != 30*time.Second {
		t.Errorf("got %s after 40 failures, want 30s", longest)
	}
	limiter.Forget(set)
	if got := limiter.NumRequeues(set); got != 0 {
		t.Errorf("got %d failures after a success, want 0", got)
	}
	first := limiter.When(set)
	for range 100 { // reconciles that events caused in the meantime
		if got := limiter.When(set); got != first {
			t.Fatalf("got a retry after %s, want %s: it was not due", got, first)
		}
	}
	if got := limiter.NumRequeues(set); got != 1 {
		t.Errorf("got %d failures, want 1", got)
	}
}
