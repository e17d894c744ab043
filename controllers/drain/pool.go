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

// stopTimeout bounds how long a stopping pool waits for attempts. They end when they next check the
// context, at the latest after the pause of a refused eviction.
const stopTimeout = 15 * time.Second

// pool runs attempts: one per Machine, first in first out, a bounded number at a time. It is a
// manager.Runnable that needs leader election.
type pool struct {
	maxRunning int
	maxWaiting int
	metrics    *Metrics
	// events triggers reconciles of the Machines whose attempt has ended.
	events chan event.GenericEvent
	// wakeup signals that an attempt may be started.
	wakeup chan struct{}
	passes sync.WaitGroup

	mu      sync.Mutex
	tasks   map[types.NamespacedName]*task
	waiting []*task
	running int
}

// task is the attempt of a Machine: queued, running, or ended with an outcome that is not recorded
// yet.
type task struct {
	key types.NamespacedName
	do  func(context.Context) outcome
	// cancel ends the attempt; nil before it runs.
	cancel context.CancelFunc
	// outcome is set when the attempt has ended.
	outcome *outcome
}

func newPool(maxRunning, maxWaiting int, metrics *Metrics) *pool {
	return &pool{
		maxRunning: maxRunning,
		maxWaiting: maxWaiting,
		metrics:    metrics,
		events:     make(chan event.GenericEvent, maxRunning+maxWaiting),
		wakeup:     make(chan struct{}, 1),
		tasks:      map[types.NamespacedName]*task{},
	}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (p *pool) NeedLeaderElection() bool { return true }

// Start runs attempts until ctx ends, and returns when the running ones have ended.
func (p *pool) Start(ctx context.Context) error {
	for ctx.Err() == nil {
		p.dispatch(ctx)
		select {
		case <-ctx.Done():
		case <-p.wakeup:
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

// submit queues the attempt of a Machine. It returns false when the queue is full. A Machine that
// has a task keeps it.
func (p *pool) submit(key types.NamespacedName, do func(context.Context) outcome) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tasks[key] != nil {
		return true
	}
	if len(p.waiting) >= p.maxWaiting {
		return false
	}
	t := &task{key: key, do: do}
	p.tasks[key] = t
	p.waiting = append(p.waiting, t)
	p.observe()
	p.wakeUp()
	return true
}

// holds reports whether the Machine has a task: queued, running, or ended and not recorded.
func (p *pool) holds(key types.NamespacedName) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tasks[key] != nil
}

// outcome returns the outcome of the Machine's attempt, if it has ended. It is kept until the task
// is dropped.
func (p *pool) outcome(key types.NamespacedName) (outcome, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.tasks[key]
	if t == nil || t.outcome == nil {
		return outcome{}, false
	}
	return *t.outcome, true
}

// drop removes the Machine's task, and cancels it when it runs.
func (p *pool) drop(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.tasks[key]
	if t == nil {
		return
	}
	delete(p.tasks, key)
	p.waiting = slices.DeleteFunc(p.waiting, func(other *task) bool { return other == t })
	if t.cancel != nil {
		t.cancel()
	}
	p.observe()
}

func (p *pool) wakeUp() {
	select {
	case p.wakeup <- struct{}{}:
	default:
	}
}

// observe is called with the lock held.
func (p *pool) observe() { p.metrics.depth(len(p.waiting), p.running) }

// dispatch starts queued attempts up to the limit.
func (p *pool) dispatch(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.running < p.maxRunning && len(p.waiting) > 0 {
		t := p.waiting[0]
		p.waiting = p.waiting[1:]
		p.running++
		working, cancel := context.WithCancel(ctx)
		t.cancel = cancel
		p.passes.Go(func() { p.work(working, t) })
	}
	p.observe()
}

func (p *pool) work(ctx context.Context, t *task) {
	defer t.cancel()
	result := runRecovering(ctx, t)
	if p.finishTask(ctx, t, result) {
		select {
		case p.events <- wake(t.key):
		case <-ctx.Done():
		}
	}
}

// finishTask keeps the outcome of an attempt that was not cancelled. It reports whether it did.
func (p *pool) finishTask(ctx context.Context, t *task, result outcome) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running--
	p.observe()
	p.wakeUp()
	if ctx.Err() != nil || p.tasks[t.key] != t {
		return false
	}
	t.outcome = &result
	return true
}

// runRecovering runs an attempt and recovers from a panic, which would end the whole manager.
func runRecovering(ctx context.Context, t *task) (result outcome) {
	defer func() {
		if cause := recover(); cause != nil {
			log.FromContext(ctx).Error(fmt.Errorf("%v", cause), "A drain panicked", "Machine", t.key, "stack",
				string(debug.Stack()))
			result = outcome{kind: podsRemain, message: fmt.Sprintf("internal error: %v", cause)}
		}
	}()
	return t.do(ctx)
}

func wake(key types.NamespacedName) event.GenericEvent {
	return event.GenericEvent{Object: &metav1.PartialObjectMetadata{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
	}}
}
