package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// Pool executes the runs submitted to it. It is a manager.Runnable that needs leader election.
type Pool struct {
	options Options
	events  chan event.GenericEvent

	mu    sync.Mutex
	queue *scheduler
	runs  map[Key]*run
	// base is the context of running tasks; nil before Start and after the pool has stopped.
	base context.Context
	// late is the context of tasks that get time to finish when the pool is stopped. life is the
	// context of settlements and outlives both.
	late, life context.Context
	abort      context.CancelCauseFunc
	// stopped is why the pool accepts no more runs.
	stopped error
	aborted chan struct{}
	pruned  time.Time
	workers sync.WaitGroup
	// batches counts the executing batches.
	batches map[batchKey]int
	// idle counts the executing runs, or batches, without a worker.
	idle int
	// gathered dispatches once the batch whose turn it is has waited for its members; nil before the first.
	gathered *time.Timer
}

// retention is how long an ended run is remembered. It exceeds every backoff.
const retention = time.Hour

// gatherAtMost bounds the wait of a batch's first run, in multiples of Options.Gather.
const gatherAtMost = 4

// gatherDoubled bounds how often the wait doubles.
const gatherDoubled = 2

// run is a request and its progress.
type run struct {
	Request
	status Status
	// timeouts counts consecutive deadlines that runs like this one have exceeded.
	timeouts int
	// failed is the Machine's previous failed run, if either run is Request.Between the attempts of
	// the other; nil for none. Its backoff still applies.
	failed *run
	// begun means that an intent was recorded, by it or by one that it repeats.
	begun bool
	// limit bounds its Execute; nil before and after.
	limit *limit
	// first is the run that its batch started with, which may be itself. Only that run has what
	// follows. with are the other runs of its batch, and of is what they have in common. open counts
	// those that have not ended; alone are those that are requeued once all have. idle means that the
	// worker was released before their end.
	first       *run
	with, alone []*run
	of          batchKey
	open        int
	idle        bool

	// Its place in the queues.
	sequence       uint64
	queue          *groupQueue
	previous, next *run
}

// batchKey is what the runs of a batch have in common.
type batchKey struct {
	group, batch string
	operation    Operation
}

func (r *run) batchKey() batchKey { return batchKey{r.Group, r.Batch, r.Operation} }

// batch returns the run and the other runs of its batch.
func (r *run) batch() []*run { return append([]*run{r}, r.with...) }

// New returns a pool. It accepts requests at once and executes them after Start.
func New(options Options) *Pool {
	options.setDefaults()
	pool := &Pool{
		options: options,
		events:  make(chan event.GenericEvent, 1024),
		queue:   newScheduler(options.limits()),
		runs:    map[Key]*run{},
		aborted: make(chan struct{}),
		batches: map[batchKey]int{},
	}
	options.Metrics.longestWaits, options.Metrics.throttled = pool.longestWaits, pool.throttledFor
	return pool
}

// Events returns the channel that carries an event for the Machine of each ended run.
func (p *Pool) Events() <-chan event.GenericEvent { return p.events }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (p *Pool) NeedLeaderElection() bool { return true }

// Submit requests a run and returns the status of the Machine's run in the pool. An existing run is
// kept if it is active, or if it failed with the same fingerprint and is backing off. A waiting run
// yields to one of higher priority. A run between the attempts of another leaves the other's
// backoff and failure count alone, and vice versa.
func (p *Pool) Submit(request Request) (Status, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped != nil {
		return Status{}, p.stopped
	}
	previous := p.runs[request.Key]
	for _, kept := range []*run{previous, previous.failedBefore()} {
		if kept != nil && p.keeps(kept, request) {
			return p.statusOf(kept), nil
		}
	}
	if previous != nil && previous.status.Phase == Queued {
		p.drop(previous)
	}
	if !p.makeRoom(request) {
		return Status{}, ErrQueueFull
	}
	next := &run{Request: request, status: Status{
		Operation:   request.Operation,
		Phase:       Queued,
		Fingerprint: request.Fingerprint,
		QueuedAt:    p.options.Clock.Now(),
	}}
	next.follow(previous)
	next.status.Deadline = p.deadline(next)
	p.runs[request.Key] = next
	p.queue.push(next)
	p.options.Metrics.waiting(next, 1)
	p.dispatch()
	return p.statusOf(next), nil
}

// follow carries over what earlier runs of the Machine have taught; previous is the last one, or
// nil.
func (r *run) follow(previous *run) {
	for _, earlier := range []*run{previous, previous.failedBefore()} {
		switch {
		case earlier == nil || earlier.status.Phase == Succeeded:
		case repeats(earlier, r.Request):
			r.status.Failures, r.status.Err = earlier.status.Failures, earlier.status.Err
			r.timeouts = earlier.timeouts
			if r.begun = r.begun || earlier.begun; r.begun {
				r.Batch = "" // it would fail the whole batch
			}
		case earlier.status.Phase == Failed && (r.Between || earlier.Between):
			r.failed = earlier
		}
	}
	previous.forgetFailed()
}

// failedBefore returns the failed run that is being retried, or nil.
func (r *run) failedBefore() *run {
	if r == nil {
		return nil
	}
	return r.failed
}

// forgetFailed keeps a run from retaining all runs before it.
func (r *run) forgetFailed() {
	if r != nil {
		r.failed = nil
	}
}

// makeRoom reports whether one more run may wait. At the bound it drops the displaced run. The
// caller holds the lock.
func (p *Pool) makeRoom(request Request) bool {
	if p.queue.queued[kindOf(request.Operation)].total < p.options.MaxQueued {
		return true
	}
	displaced := p.queue.displacedBy(request)
	if displaced == nil {
		return false
	}
	p.drop(displaced)
	return true
}

// drop removes a waiting run. The caller holds the lock.
func (p *Pool) drop(r *run) {
	p.queue.remove(r)
	p.options.Metrics.waiting(r, -1)
	p.forget(r)
}

// forget removes a run, but not the failed one before it. The caller holds the lock.
func (p *Pool) forget(r *run) {
	delete(p.runs, r.Key)
	if r.failed != nil {
		p.runs[r.Key] = r.failed
	}
}

// deadline is halved after each timeout, so that hanging runs hold their workers for less and less
// time. Every fourth attempt gets the full deadline, for runs that legitimately need it.
func (p *Pool) deadline(r *run) time.Duration {
	whole := r.Deadline
	setDefault(&whole, p.options.Deadline)
	return min(whole, max(p.options.MinDeadline, whole>>(r.timeouts%4)))
}

// Cancel removes a Machine's waiting run and returns its status. It returns false if none waits; a
// running one continues.
func (p *Pool) Cancel(key Key) (Status, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, ok := p.runs[key]
	if !ok || r.status.Phase != Queued {
		return Status{}, false
	}
	p.drop(r)
	return r.status, true
}

// keeps reports whether the existing run prevails over the request.
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

// Status returns the pool's run for a Machine.
func (p *Pool) Status(key Key) (Status, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, ok := p.runs[key]
	if !ok {
		return Status{}, false
	}
	return p.statusOf(r), true
}

func (p *Pool) statusOf(r *run) Status {
	status := r.status
	if status.Phase == Queued {
		status.Waiting = p.queue.waiting
	}
	if t := p.queue.throttles[r.Credential]; t != nil && r.status.Phase != Running {
		status.ThrottledSince = t.since
	}
	return status
}

// Start executes runs until ctx ends. It then admits no more, drops waiting runs, and cancels
// running ones with ErrStopping: at once, or after the grace period for a Finisher that is
// finishing. It returns when all have settled or the stop timeout has expired. After Abort it
// returns ErrNotLeader at once.
func (p *Pool) Start(ctx context.Context) error {
	life, abort := context.WithCancelCause(context.WithoutCancel(ctx))
	late, cancelLate := context.WithCancelCause(life)
	defer cancelLate(nil)
	base, cancel := context.WithCancelCause(late)
	defer cancel(nil)
	p.mu.Lock()
	p.abort = abort
	if p.stopped == nil {
		p.base, p.late, p.life = base, late, life
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
	grace := time.AfterFunc(p.options.StopGrace, func() { cancelLate(ErrStopping) })
	defer grace.Stop()

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
	case <-time.After(p.options.StopGrace + p.options.StopTimeout):
		return fmt.Errorf("engine runs did not settle within %s; their recorded intents are resolved at the next start",
			p.options.StopGrace+p.options.StopTimeout)
	}
}

// Abort ends everything at once, for a process that has lost leadership and is about to exit. It
// drops waiting runs, cancels running ones and their settlements with ErrNotLeader, and does not
// wait. It may be called at any time, and repeatedly.
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
		p.options.Logger.Info("Aborting engine runs: this process is not the leader", "dropped", dropped, "running",
			p.queue.running+p.idle)
	}
}

// stop admits no more runs, and returns how many waiting ones were dropped.
func (p *Pool) stop(cause error) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !errors.Is(p.stopped, ErrNotLeader) {
		p.stopped = cause
	}
	p.base = nil
	return p.queue.waiting
}

// dispatch starts waiting runs while workers are free. The caller holds the lock.
func (p *Pool) dispatch() {
	if p.base == nil {
		return
	}
	for next := p.admit(); next != nil; next = p.admit() {
		p.workers.Add(1)
		go p.work(p.life, p.base, next)
	}
}

// admit starts the next run and its batch. It returns nil if there is none, while the batch gathers,
// or if it does not fit into memory. No other run overtakes it then, or it might starve. A run that
// would execute alone starts regardless of memory. The caller holds the lock.
func (p *Pool) admit() *run {
	now := p.options.Clock.Now()
	next, pick := p.queue.pick(now)
	if next == nil {
		return nil
	}
	most := p.options.maxBatch(next.Operation)
	if p.queue.throttles[next.Credential] != nil {
		most = 1
	}
	with, footprint := companions(next, most-1), next.Footprint
	if next.Batch != "" && len(with)+1 < most && p.gathers(next, with, now) {
		return nil
	}
	if len(with) > 0 {
		footprint += batchFootprint
	}
	if p.options.Memory != nil && p.queue.running+p.idle > 0 && !p.options.Memory.Fits(footprint) {
		return nil
	}
	p.queue.start(next, now)
	for _, r := range with {
		p.queue.take(r)
	}
	next.with, next.open = with, 1+len(with)
	next.of = next.batchKey()
	p.batches[next.of]++
	if p.options.Memory != nil {
		p.options.Memory.Started(next.Run, footprint)
	}
	for _, r := range next.batch() {
		r.first, r.idle = next, false
		r.status.Phase = Running
		r.status.StartedAt = now
		p.options.Metrics.started(r, pick)
	}
	return next
}

// gathers reports whether a batch waits for more runs, and schedules a dispatch for when the wait
// ends. A burst arrives run by run: without the wait, its first runs would take all workers with a
// batch of one each. The wait doubles with each batch of the same kind that is executed: the rest of
// a slow burst then shares few workers. The caller holds the lock.
func (p *Pool) gathers(first *run, with []*run, now time.Time) bool {
	last := first
	if len(with) > 0 {
		last = with[len(with)-1]
	}
	wait := p.options.Gather << min(p.batches[first.batchKey()], gatherDoubled)
	left := min(last.status.QueuedAt.Sub(now)+wait, first.status.QueuedAt.Sub(now)+gatherAtMost*wait)
	if left <= 0 {
		return false
	}
	if p.gathered != nil {
		p.gathered.Stop()
	}
	p.gathered = time.AfterFunc(left, p.redispatch)
	return true
}

// finish records the outcome of a run, unless it has to be executed alone. The last run of a batch
// passes the worker on and requeues those, in the order of their submission. timedOut reports whether
// the deadline was exceeded.
func (p *Pool) finish(r *run, err error, timedOut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, first := p.options.Clock.Now(), r.first
	if errors.Is(err, ErrAlone) {
		first.alone = append(first.alone, r)
	} else {
		p.end(r, now, err, timedOut)
	}
	if first.open--; first.open > 0 {
		return
	}
	slices.SortFunc(first.alone, func(a, b *run) int { return cmp.Compare(a.sequence, b.sequence) })
	for _, one := range first.alone {
		p.again(one, now)
	}
	first.alone = nil
	p.release(first)
}

// release passes on the worker of the batch that started with a run. The caller holds the lock.
func (p *Pool) release(first *run) {
	now := p.options.Clock.Now()
	if first.idle {
		p.idle--
		p.queue.idles(first, -1)
	} else {
		p.queue.release(first, now)
	}
	if p.batches[first.of]--; p.batches[first.of] == 0 {
		delete(p.batches, first.of)
	}
	if p.options.Memory != nil {
		p.options.Memory.Ended(first.Run)
	}
	p.prune(now)
	p.dispatch()
}

// end records the outcome of a run. The caller holds the lock.
func (p *Pool) end(r *run, now time.Time, err error, timedOut bool) {
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
		longest := p.options.RetryMax
		if _, marked := errors.AsType[soonError](err); marked {
			longest = min(longest, soon)
		}
		r.status.RetryAt = now.Add(pause(r.status.Failures, p.options.RetryBase, longest))
	case r.status.Operation == Destroy:
		r.status.Phase, r.status.Err, r.status.Failures = Succeeded, nil, 0
	case r.Between:
		p.forget(r)
	default:
		delete(p.runs, r.Key)
	}
}

// prune removes runs that ended longer than retention ago, and throttles without news since, at
// most once per retention. The caller holds the lock.
func (p *Pool) prune(now time.Time) {
	if now.Sub(p.pruned) < retention {
		return
	}
	p.pruned = now
	for key, r := range p.runs {
		if !r.status.Active() && now.Sub(r.status.EndedAt) > retention {
			delete(p.runs, key)
		}
	}
	for credential, t := range p.queue.throttles {
		if now.Sub(t.until) > retention {
			delete(p.queue.throttles, credential)
		}
	}
}

// pause returns the backoff, which doubles with each failure. The queue spreads Machines that fail
// together, so it needs no jitter.
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
