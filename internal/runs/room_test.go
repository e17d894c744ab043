package runs

import (
	"errors"
	"fmt"
	"testing"
)

// flood submits runs for so many Machines of a tenant, in groups of size each.
func flood(t *testing.T, pool *Pool, tenant string, operation Operation, count, size int) {
	t.Helper()
	for i := range count {
		submit(t, pool, of(tenant, fmt.Sprintf("%s-%d", tenant, i/size), fmt.Sprintf("%s-%s-%d", tenant, operation, i), operation))
	}
}

func of(tenant, group, name string, operation Operation) Request {
	r := request(name, group, operation, &script{})
	r.Machine.Namespace = tenant
	return r
}

const bound = 10000

func TestNobodyKeepsTheRunsOfOthersOutOfTheQueue(t *testing.T) {
	for name, size := range map[string]int{"one MachineSet of 10,000": bound, "10,000 MachineSets of one": 1} {
		t.Run(name, func(t *testing.T) {
			pool := New(Options{MaxQueued: bound})
			flood(t, pool, "greedy", Create, bound, size)
			last := Key(fmt.Sprintf("greedy-create-%d", bound-1))
			if _, err := pool.Submit(of("greedy", "greedy-0", "greedy-more", Create)); !errors.Is(err, ErrQueueFull) {
				t.Errorf("a run more of the same: %v, want %v", err, ErrQueueFull)
			}
			submit(t, pool, of("third", "third", "third-gone", Destroy))
			if status, held := pool.Status(last); !held || status.Waiting != bound+1 {
				t.Errorf("after a destroy the newest run is %+v (held: %t), want it to wait still: destroys have a bound of their own", status, held)
			}
			submit(t, pool, of("modest", "modest", "modest-first", Create))
			if status, held := pool.Status("modest-first"); !held || status.Phase != Queued || status.Waiting != bound+1 {
				t.Errorf("the first run of another is %+v (held: %t), want it to wait in place of one", status, held)
			}
			if displaced := bound - countOf(pool, "greedy", Create); displaced != 1 {
				t.Errorf("%d runs were displaced, want one", displaced)
			}
			if _, held := pool.Status("greedy-create-0"); !held {
				t.Error("the oldest run was displaced")
			}
			if _, err := pool.Submit(of("greedy", "greedy-0", "greedy-more", Create)); !errors.Is(err, ErrQueueFull) {
				t.Errorf("a displaced run comes back: %v, want %v", err, ErrQueueFull)
			}

			flood(t, pool, "greedy", Destroy, bound-1, size)
			submit(t, pool, of("third", "third", "third-gone-as-well", Destroy))
			if _, held := pool.Status("third-gone"); !held {
				t.Error("the destroy that waited was displaced")
			}
			if got := pool.queue.waiting; got > 2*bound {
				t.Errorf("%d runs wait, want %d at most", got, 2*bound)
			}
		})
	}
}

// countOf counts the runs that the pool holds of a tenant.
func countOf(pool *Pool, tenant string, operation Operation) (count int) {
	for _, r := range pool.runs {
		if r.Machine.Namespace == tenant && r.Operation == operation {
			count++
		}
	}
	return count
}

func TestGroupsOfOneNamespaceShareItsPlaces(t *testing.T) {
	pool := New(Options{MaxQueued: 4})
	for i := range 4 {
		submit(t, pool, of("ns", "large", fmt.Sprint("large-", i), Update))
	}
	for i, full := range []bool{false, false, true} {
		if _, err := pool.Submit(of("ns", "small", fmt.Sprint("small-", i), Create)); errors.Is(err, ErrQueueFull) != full {
			t.Errorf("run %d of the small group: %v, want it kept out: %t", i, err, full)
		}
	}
	for key, want := range map[Key]bool{"large-0": true, "large-1": true, "large-2": false, "large-3": false, "small-0": true, "small-1": true} {
		if _, held := pool.Status(key); held != want {
			t.Errorf("%s waits: %t, want %t", key, held, want)
		}
	}
}

func TestARunThatIsNotReplacedForWantOfRoomLeavesNothing(t *testing.T) {
	pool := New(Options{MaxQueued: 1})
	submit(t, pool, of("ns", "group", "other", Destroy))
	submit(t, pool, of("ns", "group", "machine", Create))
	if _, err := pool.Submit(of("ns", "group", "machine", Destroy)); !errors.Is(err, ErrQueueFull) {
		t.Fatalf("a destroy too many: %v, want %v", err, ErrQueueFull)
	}
	if status, held := pool.Status("machine"); held {
		t.Errorf("the pool holds %+v, which waits in no queue", status)
	}
}
