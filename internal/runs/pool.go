package runs

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// Pool runs what is submitted to it. It is a manager.Runnable that wants leadership.
type Pool struct {
	options Options
	events  chan event.GenericEvent

	mu      sync.Mutex
	queue   *queue
	runs    map[types.UID]*run
	running map[Operation]int
	// base is the context of running tasks; nil before Start and after the pool was told to stop.
	base     context.Context
	stopping bool
	pruned   time.Time
	workers  sync.WaitGroup
}

// retention is how long an ended run is remembered. It is longer than any pause.
const retention = time.Hour

// run is a request and what became of it.
type run struct {
	Request
	status Status

	// Where it waits.
	turn           uint64
	line           *line
	previous, next *run
}

// New makes a pool that accepts requests at once and executes them once it is started.
func New(options Options) *Pool {
	options.setDefaults()
	return &Pool{
		options: options,
		events:  make(chan event.GenericEvent, 1024),
		queue:   newQueue(),
		runs:    map[types.UID]*run{},
		running: map[Operation]int{},
	}
}

// Events carries one event per ended run, naming its Machine.
func (p *Pool) Events() <-chan event.GenericEvent { return p.events }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (p *Pool) NeedLeaderElection() bool { return true }

// Submit asks for a run and answers the status of the run that the pool now holds for the Machine. That is the one that is
// there already when it is active, or when it has failed with the same fingerprint and its pause is not over. A waiting run
// gives way to one of higher precedence.
func (p *Pool) Submit(request Request) (Status, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopping {
		return Status{}, ErrStopping
	}
	previous := p.runs[request.UID]
	if previous != nil && p.keeps(previous, request) {
		return previous.status, nil
	}
	if previous != nil && previous.status.Phase == Queued {
		p.queue.remove(previous)
		p.options.Metrics.waiting(previous, -1)
	}
	if p.queue.size >= p.options.MaxQueued {
		return Status{}, ErrQueueFull
	}
	next := &run{Request: request, status: Status{
		Operation:   request.Operation,
		Phase:       Queued,
		Fingerprint: request.Fingerprint,
		QueuedAt:    p.options.Clock.Now(),
	}}
	if previous != nil && repeats(previous, request) {
		next.status.Failures, next.status.Err = previous.status.Failures, previous.status.Err
	}
	p.runs[request.UID] = next
	p.queue.push(next)
	p.options.Metrics.waiting(next, 1)
	p.dispatch()
	return next.status, nil
}

// keeps decides whether the run that is there stands against the request.
func (p *Pool) keeps(previous *run, request Request) bool {
	switch previous.status.Phase {
	case Running:
		return true
	case Queued:
		return request.Operation.rank() >= previous.status.Operation.rank()
	case Succeeded:
		return false
	default:
		return repeats(previous, request) && p.options.Clock.Now().Before(previous.status.RetryAt)
	}
}

func repeats(previous *run, request Request) bool {
	return previous.status.Operation == request.Operation && previous.status.Fingerprint == request.Fingerprint
}

// Status answers the run that the pool holds for a Machine.
func (p *Pool) Status(uid types.UID) (Status, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, ok := p.runs[uid]
	if !ok {
		return Status{}, false
	}
	return r.status, true
}

// Start executes runs until ctx ends. Then it admits no more, drops what waits, cancels what runs with ErrStopping, and answers
// when all have settled or the stop timeout has passed.
func (p *Pool) Start(ctx context.Context) error {
	base, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	p.mu.Lock()
	p.base = base
	p.dispatch()
	p.mu.Unlock()

	<-ctx.Done()

	p.mu.Lock()
	p.stopping = true
	p.base = nil
	dropped := p.queue.size
	p.mu.Unlock()
	p.options.Logger.Info("Stopping engine runs", "dropped", dropped)
	cancel(ErrStopping)

	settled := make(chan struct{})
	go func() {
		p.workers.Wait()
		close(settled)
	}()
	select {
	case <-settled:
		return nil
	case <-time.After(p.options.StopTimeout):
		return fmt.Errorf("engine runs did not settle within %s; their intents stay recorded and are resolved at the next start", p.options.StopTimeout)
	}
}

// dispatch starts waiting runs while there is room. The caller holds the lock.
func (p *Pool) dispatch() {
	if p.base == nil {
		return
	}
	for p.total() < p.options.MaxConcurrent {
		next := p.queue.pop(p.admits)
		if next == nil {
			return
		}
		next.status.Phase = Running
		next.status.StartedAt = p.options.Clock.Now()
		p.running[next.status.Operation]++
		p.options.Metrics.started(next)
		p.workers.Add(1)
		go p.work(p.base, next)
	}
}

func (p *Pool) admits(operation Operation) bool {
	return operation != Drift || p.running[Drift] < p.options.MaxConcurrentDrift
}

func (p *Pool) total() int {
	total := 0
	for _, count := range p.running {
		total += count
	}
	return total
}

func (p *Pool) work(base context.Context, r *run) {
	defer p.workers.Done()
	err := p.carryOut(base, r)
	p.finish(r, err)
	p.wake(base, r.Machine)
}

// carryOut is the life of a run: intent, execution, settlement.
func (p *Pool) carryOut(base context.Context, r *run) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			p.options.Logger.Error(fmt.Errorf("%v", cause), "A run panicked", "Machine", r.Machine, "stack", string(debug.Stack()))
			err = fmt.Errorf("running %s for Machine %s: internal error: %v", r.status.Operation, r.Machine, cause)
		}
	}()
	intending, cancel := context.WithTimeout(base, p.options.BookkeepingTimeout)
	err = r.Task.Intend(intending)
	cancel()
	if err != nil {
		return fmt.Errorf("recording the intent to %s: %w", r.status.Operation, err)
	}
	deadline := r.Deadline
	setDefault(&deadline, p.options.Deadline)
	executing, cancel := context.WithTimeoutCause(base, deadline, ErrDeadline)
	outcome := r.Task.Execute(executing)
	if cause := context.Cause(executing); outcome != nil && cause != nil {
		outcome = errors.Join(outcome, cause)
	}
	cancel()
	settling, cancel := context.WithTimeout(context.WithoutCancel(base), p.options.BookkeepingTimeout)
	defer cancel()
	return r.Task.Settle(settling, outcome)
}

// finish records the outcome and gives the worker to the next run.
func (p *Pool) finish(r *run, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.options.Clock.Now()
	p.running[r.status.Operation]--
	p.options.Metrics.ended(r, now, err)
	r.Task = nil
	r.status.EndedAt = now
	switch {
	case err != nil:
		r.status.Phase = Failed
		r.status.Err = err
		r.status.Failures++
		r.status.RetryAt = now.Add(pause(r.status.Failures, p.options.RetryBase, p.options.RetryMax))
	case r.status.Operation == Destroy:
		r.status.Phase = Succeeded
	default:
		delete(p.runs, r.UID)
	}
	p.prune(now)
	p.dispatch()
}

// prune forgets, once per retention at most, runs that ended longer ago than that. The caller holds the lock.
func (p *Pool) prune(now time.Time) {
	if now.Sub(p.pruned) < retention {
		return
	}
	p.pruned = now
	for uid, r := range p.runs {
		if !r.status.Active() && now.Sub(r.status.EndedAt) > retention {
			delete(p.runs, uid)
		}
	}
}

// pause grows twofold with each failure. Machines that fail together are spread by their queue, so it needs no jitter.
func pause(failures int, base, limit time.Duration) time.Duration {
	for ; failures > 1 && base < limit; failures-- {
		base *= 2
	}
	return min(base, limit)
}

func (p *Pool) wake(ctx context.Context, machine types.NamespacedName) {
	woken := event.GenericEvent{Object: &metav1.PartialObjectMetadata{
		ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: machine.Name},
	}}
	select {
	case p.events <- woken:
	case <-ctx.Done():
	}
}
