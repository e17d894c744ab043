package runs

import (
	"context"
	"errors"
	"fmt"
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

	mu    sync.Mutex
	queue *scheduler
	runs  map[types.UID]*run
	// base is the context of running tasks; nil before Start and after the pool was stopped.
	base context.Context
	// life is the context of settling, which outlives base.
	life  context.Context
	abort context.CancelCauseFunc
	// stopped is why nothing is accepted any more.
	stopped error
	aborted chan struct{}
	pruned  time.Time
	workers sync.WaitGroup
}

// retention is how long an ended run is remembered. It is longer than any pause.
const retention = time.Hour

// run is a request and what became of it.
type run struct {
	Request
	status Status
	// timeouts is how often in a row a run like this one has used up its deadline.
	timeouts int
	// limit bounds its Execute; nil before and after.
	limit *limit
	// with are the runs that are executed together with it.
	with []*run

	// Where it waits.
	sequence       uint64
	queue          *groupQueue
	previous, next *run
}

// batch returns the run and those that are executed together with it.
func (r *run) batch() []*run { return append([]*run{r}, r.with...) }

// New makes a pool that accepts requests at once and executes them once it is started.
func New(options Options) *Pool {
	options.setDefaults()
	pool := &Pool{
		options: options,
		events:  make(chan event.GenericEvent, 1024),
		queue:   newScheduler(options.limits()),
		runs:    map[types.UID]*run{},
		aborted: make(chan struct{}),
	}
	options.Metrics.longestWaits = pool.longestWaits
	return pool
}

// Events carries one event per ended run, naming its Machine.
func (p *Pool) Events() <-chan event.GenericEvent { return p.events }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (p *Pool) NeedLeaderElection() bool { return true }

// Submit asks for a run and returns the status of the run that the pool now holds for the Machine. That is the one that is
// there already when it is active, or when it has failed with the same fingerprint and its pause is not over. A waiting run
// gives way to one of higher precedence.
func (p *Pool) Submit(request Request) (Status, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped != nil {
		return Status{}, p.stopped
	}
	previous := p.runs[request.UID]
	if previous != nil && p.keeps(previous, request) {
		return p.statusOf(previous), nil
	}
	if previous != nil && previous.status.Phase == Queued {
		p.queue.remove(previous)
		p.options.Metrics.waiting(previous, -1)
	}
	if p.queue.waiting >= p.options.MaxQueued {
		return Status{}, ErrQueueFull
	}
	next := &run{Request: request, status: Status{
		Operation:   request.Operation,
		Phase:       Queued,
		Fingerprint: request.Fingerprint,
		QueuedAt:    p.options.Clock.Now(),
	}}
	if previous != nil && previous.status.Phase != Succeeded && repeats(previous, request) {
		next.status.Failures, next.status.Err = previous.status.Failures, previous.status.Err
		next.timeouts = previous.timeouts
		next.Batch = "" // the others would fail with it
	}
	next.status.Deadline = p.deadline(next)
	p.runs[request.UID] = next
	p.queue.push(next)
	p.options.Metrics.waiting(next, 1)
	p.dispatch()
	return p.statusOf(next), nil
}

// deadline is halved with each time that it was used up, so that runs that hang hold their workers for less and less. Every fourth
// time it is the whole again: a run that just needs more than the half must not fail for ever.
func (p *Pool) deadline(r *run) time.Duration {
	whole := r.Deadline
	setDefault(&whole, p.options.Deadline)
	return min(whole, max(p.options.MinDeadline, whole>>(r.timeouts%4)))
}

// Cancel takes a Machine's run back that waits, and returns what it was. It reports false when none waits; one that runs goes on.
func (p *Pool) Cancel(uid types.UID) (Status, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, ok := p.runs[uid]
	if !ok || r.status.Phase != Queued {
		return Status{}, false
	}
	p.queue.remove(r)
	p.options.Metrics.waiting(r, -1)
	delete(p.runs, uid)
	return r.status, true
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

// Status returns the run that the pool holds for a Machine.
func (p *Pool) Status(uid types.UID) (Status, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, ok := p.runs[uid]
	if !ok {
		return Status{}, false
	}
	return p.statusOf(r), true
}

// statusOf returns the status of a run. The caller holds the lock.
func (p *Pool) statusOf(r *run) Status {
	status := r.status
	if status.Phase == Queued {
		status.Waiting = p.queue.waiting
	}
	return status
}

// Start executes runs until ctx ends. Then it admits no more, drops what waits, cancels what runs with ErrStopping, and returns
// when all have settled or the stop timeout has passed. After Abort it returns ErrNotLeader at once.
func (p *Pool) Start(ctx context.Context) error {
	life, abort := context.WithCancelCause(context.WithoutCancel(ctx))
	base, cancel := context.WithCancelCause(life)
	defer cancel(nil)
	p.mu.Lock()
	p.abort = abort
	if p.stopped == nil {
		p.base, p.life = base, life
		p.dispatch()
	}
	p.mu.Unlock()

	select {
	case <-ctx.Done():
	case <-p.aborted:
		return ErrNotLeader
	}
	p.options.Logger.Info("Stopping engine runs", "dropped", p.stop(ErrStopping))
	cancel(ErrStopping)

	settled := make(chan struct{})
	go func() {
		p.workers.Wait()
		close(settled)
	}()
	select {
	case <-settled:
		return nil
	case <-p.aborted:
		return ErrNotLeader
	case <-time.After(p.options.StopTimeout):
		return fmt.Errorf("engine runs did not settle within %s; their intents stay recorded and are resolved at the next start", p.options.StopTimeout)
	}
}

// Abort ends everything at once, for a process that is about to exit because it does not lead any more: what waits is dropped, what runs
// is cancelled with ErrNotLeader, its settlement as well, and nothing is waited for. It may be called at any time, and again.
func (p *Pool) Abort() {
	dropped := p.stop(ErrNotLeader)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.abort != nil {
		p.abort(ErrNotLeader)
	}
	select {
	case <-p.aborted:
	default:
		close(p.aborted)
		p.options.Logger.Info("Aborting engine runs, as this process is not the leader", "dropped", dropped, "running", p.queue.running)
	}
}

// stop lets nothing start any more, and returns how many runs wait for nothing.
func (p *Pool) stop(cause error) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !errors.Is(p.stopped, ErrNotLeader) {
		p.stopped = cause
	}
	p.base = nil
	return p.queue.waiting
}

// dispatch starts waiting runs while there is room. The caller holds the lock.
func (p *Pool) dispatch() {
	if p.base == nil {
		return
	}
	for next := p.admit(); next != nil; next = p.admit() {
		p.workers.Add(1)
		go p.work(p.life, p.base, next)
	}
}

// admit notes the start of the run that is next, and of those that go with it. It returns nil when there is none, or no memory for it: then
// nothing passes it, as it might never have its turn otherwise. One that would run alone starts whatever it takes. The caller holds the lock.
func (p *Pool) admit() *run {
	now := p.options.Clock.Now()
	next, pick := p.queue.pick()
	if next == nil {
		return nil
	}
	with, footprint := companions(next, p.options.maxBatch(next.Operation)-1), next.Footprint
	if len(with) > 0 {
		footprint += batchFootprint
	}
	if p.options.Memory != nil && p.queue.running > 0 && !p.options.Memory.Fits(footprint) {
		return nil
	}
	p.queue.start(next, now)
	for _, r := range with {
		p.queue.take(r)
	}
	next.with = with
	if p.options.Memory != nil {
		p.options.Memory.Started(next.Run, footprint)
	}
	for _, r := range next.batch() {
		r.status.Phase = Running
		r.status.StartedAt = now
		p.options.Metrics.started(r, pick)
	}
	return next
}

// finish records the outcome and gives the worker to the next run. timedOut reports that the deadline was used up.
func (p *Pool) finish(r *run, err error, timedOut bool) {
	p.finishAll(r, []error{err}, []bool{timedOut})
}

// finishAll does the same for the batch of a run, with an outcome for each.
func (p *Pool) finishAll(first *run, errs []error, timedOut []bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.options.Clock.Now()
	p.queue.release(first, now)
	if p.options.Memory != nil {
		p.options.Memory.Ended(first.Run)
	}
	batch := first.batch()
	first.with = nil
	for i, r := range batch {
		p.end(r, now, errs[i], timedOut[i])
	}
	p.prune(now)
	p.dispatch()
}

// end records the outcome of a run. The caller holds the lock.
func (p *Pool) end(r *run, now time.Time, err error, timedOut bool) {
	if errors.Is(err, ErrAlone) {
		p.again(r, now)
		return
	}
	p.options.Metrics.ended(r, now, err)
	r.Task = nil
	r.status.EndedAt = now
	switch {
	case err != nil:
		if timedOut {
			r.timeouts++
		}
		r.status.Phase = Failed
		r.status.Err = err
		r.status.Failures++
		r.status.RetryAt = now.Add(pause(r.status.Failures, p.options.RetryBase, p.options.RetryMax))
	case r.status.Operation == Destroy:
		r.status.Phase, r.status.Err, r.status.Failures = Succeeded, nil, 0
	default:
		delete(p.runs, r.UID)
	}
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
	select {
	case p.events <- woken(machine):
	case <-ctx.Done():
	}
}

// woken returns the event that wakes a Machine.
func woken(machine types.NamespacedName) event.GenericEvent {
	return event.GenericEvent{Object: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: machine.Name}}}
}
