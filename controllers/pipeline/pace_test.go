package pipeline

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestReconcilesThatReadManyAreKeptApart(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	pace := NewPace(now)
	large, small := types.NamespacedName{Name: "large"}, types.NamespacedName{Name: "small"}
	pace.Reconciled(large, 5000)
	pace.Reconciled(small, 100)
	if got := pace.Wait(large); got != 500*time.Millisecond {
		t.Errorf("after 5000 were read the next waits %s, want half a second", got)
	}
	if got := pace.Wait(small); got != 0 {
		t.Errorf("after 100 were read the next waits %s, want no wait", got)
	}
	now.SetTime(now.Now().Add(400 * time.Millisecond))
	if got := pace.Wait(large); got != 100*time.Millisecond {
		t.Errorf("400 ms later it waits %s, want 100 ms", got)
	}
	now.SetTime(now.Now().Add(time.Second))
	if got := pace.Wait(large); got != 0 {
		t.Errorf("after the pause it waits %s", got)
	}
	pace.Reconciled(large, 5000)
	pace.Reconciled(large, 10)
	if got := pace.Wait(large); got != 0 {
		t.Errorf("one that has become small waits %s", got)
	}
	pace.Reconciled(large, 5000)
	pace.Forget(large)
	if got := pace.Wait(large); got != 0 || len(pace.next) != 0 {
		t.Errorf("one that is gone waits %s, and %d are known", got, len(pace.next))
	}
}
