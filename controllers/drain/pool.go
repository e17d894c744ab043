package drain

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// stopTimeout bounds how long the pool waits for passes once it is told to stop. They end at their next look at the context, which
// is no further away than a refused eviction's pause.
const stopTimeout = 15 * time.Second

// pool runs passes: one per Machine, first come first served, a bounded number at a time. It is a manager.Runnable that wants
// leadership.
type pool struct {
	places  int
	room    int
	metrics *Metrics
	// events wakes the Machines whose pass has ended.
	events chan event.GenericEvent
	// stirred says that there may be something to start.
	stirred chan struct{}
	passes  sync.WaitGroup

	mu      sync.Mutex
	tickets map[types.NamespacedName]*ticket
	waiting []*ticket
	running int
}

// ticket is a Machine's place: in line, at work, or with an outcome that was not taken yet.
type ticket struct {
	key types.NamespacedName
	do  func(context.Context) outcome
	// cancel ends the pass; nil before it runs.
	cancel context.CancelFunc
	// outcome is set when the pass has ended.
	outcome *outcome
}

func newPool(places, room int, metrics *Metrics) *pool {
	return &pool{
		places:  places,
		room:    room,
		metrics: metrics,
		events:  make(chan event.GenericEvent, places+room),
		stirred: make(chan struct{}, 1),
		tickets: map[types.NamespacedName]*ticket{},
	}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (p *pool) NeedLeaderElection() bool { return true }

// Start runs passes until ctx ends, and answers when those that run have ended.
func (p *pool) Start(ctx context.Context) error {
	for ctx.Err() == nil {
		p.dispatch(ctx)
		select {
		case <-ctx.Done():
		case <-p.stirred:
		}
	}
	ended := make(chan struct{})
	go func() {
		p.passes.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-time.After(stopTimeout):
		return fmt.Errorf("stopping drains: they did not stop within %s; the next manager starts them again", stopTimeout)
	}
}

// submit puts a Machine at the end of the line. It answers false when the line is full. A Machine that has a place keeps it.
func (p *pool) submit(key types.NamespacedName, do func(context.Context) outcome) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tickets[key] != nil {
		return true
	}
	if len(p.waiting) >= p.room {
		return false
	}
	t := &ticket{key: key, do: do}
	p.tickets[key] = t
	p.waiting = append(p.waiting, t)
	p.observe()
	p.stir()
	return true
}

// holds reports whether the Machine waits, is at work, or has an outcome that was not taken.
func (p *pool) holds(key types.NamespacedName) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tickets[key] != nil
}

// outcome answers what came of the Machine's pass, if it has ended. It is kept until it is dropped.
func (p *pool) outcome(key types.NamespacedName) (outcome, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.tickets[key]
	if t == nil || t.outcome == nil {
		return outcome{}, false
	}
	return *t.outcome, true
}

// drop takes the Machine out of the line, ends its pass, or takes its outcome away.
func (p *pool) drop(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.tickets[key]
	if t == nil {
		return
	}
	delete(p.tickets, key)
	p.waiting = slices.DeleteFunc(p.waiting, func(other *ticket) bool { return other == t })
	if t.cancel != nil {
		t.cancel()
	}
	p.observe()
}

func (p *pool) stir() {
	select {
	case p.stirred <- struct{}{}:
	default:
	}
}

// observe is called with the lock held.
func (p *pool) observe() { p.metrics.depth(len(p.waiting), p.running) }

// dispatch starts passes while there are places.
func (p *pool) dispatch(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.running < p.places && len(p.waiting) > 0 {
		t := p.waiting[0]
		p.waiting = p.waiting[1:]
		p.running++
		working, cancel := context.WithCancel(ctx)
		t.cancel = cancel
		p.passes.Go(func() { p.work(working, t) })
	}
	p.observe()
}

func (p *pool) work(ctx context.Context, t *ticket) {
	defer t.cancel()
	result := safely(ctx, t)
	if p.conclude(ctx, t, result) {
		select {
		case p.events <- wake(t.key):
		case <-ctx.Done():
		}
	}
}

// conclude frees the place, and keeps the outcome of a pass that nobody has ended.
func (p *pool) conclude(ctx context.Context, t *ticket, result outcome) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running--
	p.observe()
	p.stir()
	if ctx.Err() != nil || p.tickets[t.key] != t {
		return false
	}
	t.outcome = &result
	return true
}

// safely runs a pass; one that panics must not take the other Machines' controllers along.
func safely(ctx context.Context, t *ticket) (result outcome) {
	defer func() {
		if cause := recover(); cause != nil {
			log.FromContext(ctx).Error(fmt.Errorf("%v", cause), "A drain panicked", "Machine", t.key, "stack", string(debug.Stack()))
			result = outcome{verdict: obstructed, message: fmt.Sprintf("internal error: %v", cause)}
		}
	}()
	return t.do(ctx)
}

func wake(key types.NamespacedName) event.GenericEvent {
	return event.GenericEvent{Object: &metav1.PartialObjectMetadata{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
	}}
}
