package drain

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

// patience is how long a test waits for what must happen.
const patience = 10 * time.Second

func keyOf(i int) types.NamespacedName {
	return types.NamespacedName{Namespace: "ns", Name: fmt.Sprintf("m%d", i)}
}

// started runs a pool until stop is called.
func started(t *testing.T, p *pool) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Start(ctx) }()
	stop = func() {
		cancel()
		if ended == nil {
			return
		}
		if err := received(t, ended); err != nil {
			t.Error(err)
		}
		ended = nil
	}
	t.Cleanup(stop)
	return stop
}

func received[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(patience):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

func woken(t *testing.T, p *pool) string {
	t.Helper()
	return received(t, p.events).Object.GetName()
}

func nothing(context.Context) outcome { return outcome{kind: nodeEmpty} }

func TestPoolIsFirstComeFirstServed(t *testing.T) {
	p := newPool(1, 10, NewMetrics())
	var order []int
	for i := range 5 {
		if !p.submit(keyOf(i), func(context.Context) outcome { order = append(order, i); return outcome{left: i} }) {
			t.Fatal("there is room")
		}
	}
	started(t, p)
	for i := range 5 {
		if got := woken(t, p); got != keyOf(i).Name {
			t.Errorf("got %s, want %s", got, keyOf(i).Name)
		}
	}
	if diff := cmp.Diff([]int{0, 1, 2, 3, 4}, order); diff != "" {
		t.Error(diff)
	}
	for i := range 5 {
		if got, ended := p.outcome(keyOf(i)); !ended || got.left != i {
			t.Errorf("outcome of %d: got %+v, %v", i, got, ended)
		}
	}
}

func TestPoolHasOnePassPerMachineAndKeepsItsOutcome(t *testing.T) {
	p := newPool(2, 10, NewMetrics())
	passes := make(chan int, 10)
	do := func(n int) func(context.Context) outcome {
		return func(context.Context) outcome { passes <- n; return outcome{left: n} }
	}
	p.submit(keyOf(0), do(1))
	p.submit(keyOf(0), do(2))
	started(t, p)
	woken(t, p)
	p.submit(keyOf(0), do(3))
	if got, ended := p.outcome(keyOf(0)); !ended || got.left != 1 || len(passes) != 1 {
		t.Errorf("got %+v, %v after %d passes; want the first outcome, until it is taken", got, ended, len(passes))
	}
	p.drop(keyOf(0))
	if p.holds(keyOf(0)) {
		t.Error("what was taken is gone")
	}
	p.submit(keyOf(0), do(4))
	woken(t, p)
	if got, _ := p.outcome(keyOf(0)); got.left != 4 {
		t.Errorf("got %+v, want the new outcome", got)
	}
}

func TestPoolIsBounded(t *testing.T) {
	metrics := NewMetrics()
	p := newPool(2, 3, metrics)
	hold, begun := make(chan struct{}), make(chan struct{}, 10)
	do := func(context.Context) outcome { begun <- struct{}{}; <-hold; return outcome{} }
	started(t, p)
	for i := range 2 {
		p.submit(keyOf(i), do)
		received(t, begun)
	}
	for i := 2; i < 5; i++ {
		if !p.submit(keyOf(i), do) {
			t.Errorf("there is room for %d", i)
		}
	}
	if p.submit(keyOf(5), do) || p.holds(keyOf(5)) {
		t.Error("the line is full")
	}
	if waiting, running := depths(t, metrics); waiting != 3 || running != 2 || len(begun) != 0 {
		t.Errorf("got %v waiting, %v running", waiting, running)
	}
	p.drop(keyOf(3))
	if !p.submit(keyOf(5), do) {
		t.Error("one has left the line")
	}
	close(hold)
	for range 5 {
		woken(t, p)
	}
	if waiting, running := depths(t, metrics); waiting != 0 || running != 0 {
		t.Errorf("got %v waiting, %v running at the end", waiting, running)
	}
}

func TestPoolEndsThePassOfAMachineThatIsForgotten(t *testing.T) {
	p := newPool(1, 10, NewMetrics())
	begun, ended := make(chan struct{}), make(chan struct{})
	started(t, p)
	p.submit(keyOf(0), func(ctx context.Context) outcome {
		close(begun)
		<-ctx.Done()
		close(ended)
		return outcome{left: 1}
	})
	received(t, begun)
	p.drop(keyOf(0))
	received(t, ended)
	p.submit(keyOf(0), nothing)
	woken(t, p)
	if got, ok := p.outcome(keyOf(0)); !ok || got.kind != nodeEmpty {
		t.Errorf("got %+v, %v: the outcome of a pass that was ended must not count", got, ok)
	}
}

func TestPoolStopsWithTheManager(t *testing.T) {
	p := newPool(1, 10, NewMetrics())
	begun := make(chan struct{})
	stop := started(t, p)
	p.submit(keyOf(0), func(ctx context.Context) outcome { close(begun); <-ctx.Done(); return outcome{left: 1} })
	p.submit(keyOf(1), func(context.Context) outcome { t.Error("must not begin"); return outcome{} })
	received(t, begun)
	stop()
	if _, ended := p.outcome(keyOf(0)); ended || len(p.events) != 0 {
		t.Error("a pass that the manager's end has ended has no outcome")
	}
	if !p.NeedLeaderElection() {
		t.Error("only the leader drains")
	}
}

func TestPoolSurvivesAPanic(t *testing.T) {
	p := newPool(1, 10, NewMetrics())
	started(t, p)
	p.submit(keyOf(0), func(context.Context) outcome { panic("nil map") })
	woken(t, p)
	if got, _ := p.outcome(keyOf(0)); got.kind != podsRemain || !strings.Contains(got.message, "nil map") {
		t.Errorf("got %+v", got)
	}
	p.submit(keyOf(1), nothing)
	if got := woken(t, p); got != keyOf(1).Name {
		t.Errorf("got %s: the place must be free again", got)
	}
}
