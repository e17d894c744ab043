package runs

import (
	"context"
	"errors"
	"time"
)

// ErrWaited is the cause with which a task is cancelled that has waited too long for something
// outside this process.
var ErrWaited = errors.New("the run has waited too long")

// ErrGivesWay is the cause with which a waiting task is cancelled that is no longer wanted.
var ErrGivesWay = errors.New("the run is no longer wanted")

// Interrupted reports whether a run ended because it was told to, not because it failed.
func Interrupted(outcome error) bool {
	return errors.Is(outcome, ErrStopping) || errors.Is(outcome, ErrGivesWay)
}

// limit bounds one run's Execute. Waits outside this process have a limit of their own. The pool's
// lock protects it.
type limit struct {
	cancel context.CancelCauseFunc
	timer  *time.Timer
	// work and wait are what remains of the two times. since is when the current one began to
	// count.
	work, wait time.Duration
	since      time.Time
}

// newLimit returns the limit of a run that starts working.
func newLimit(cancel context.CancelCauseFunc, work, wait time.Duration, now time.Time) *limit {
	l := &limit{cancel: cancel, work: work, wait: wait, since: now}
	l.timer = time.AfterFunc(work, func() { cancel(ErrDeadline) })
	return l
}

// change switches between the two times. A limit that has expired has cancelled the run, or is
// about to.
func (l *limit) change(waits bool, now time.Time) {
	if !l.timer.Stop() {
		return
	}
	spent := now.Sub(l.since)
	l.since = now
	if waits {
		l.work -= spent
		l.timer = time.AfterFunc(l.wait, func() { l.cancel(ErrWaited) })
		return
	}
	l.wait -= spent
	l.timer = time.AfterFunc(l.work, func() { l.cancel(ErrDeadline) })
}

// Waits records what a Machine's executing run waits for outside this process, such as a queue of
// the cluster, or "" when the run continues. That time does not count towards the run's deadline;
// it has a bound of its own. The Machine is woken when the wait begins and when it ends.
func (p *Pool) Waits(key Key, what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, ok := p.runs[key]
	if !ok || r.limit == nil || r.status.Waits == what {
		return
	}
	changes := (r.status.Waits == "") != (what == "")
	r.status.Waits = what
	if !changes {
		return
	}
	r.limit.change(what != "", p.options.Clock.Now())
	select {
	case p.events <- woken(r.Machine):
	default: // the periodic reconcile picks it up
	}
}

// Idles records that the engine of a Machine's executing run, or of its batch, now waits for the
// infrastructure. Its worker is free for other runs from then on, unless Options.MaxIdle others are
// idle already, Options.MaxPerGroup of its group, or its credential is throttled. A drift check
// keeps its worker. Call it again while the engine waits.
func (p *Pool) Idles(key Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, ok := p.runs[key]
	if !ok || r.limit == nil || r.first.idle || r.Operation == Drift || p.queue.throttles[r.Credential] != nil ||
		p.idle >= p.options.MaxIdle || p.queue.idleGroups[r.Group] >= p.options.MaxPerGroup {
		return
	}
	r.first.idle = true
	p.idle++
	p.queue.idles(r.first, 1)
	p.queue.release(r.first, p.options.Clock.Now())
	p.dispatch()
}

// Interrupt cancels a Machine's run that waits outside this process and is no longer wanted. It
// returns false if there is none.
func (p *Pool) Interrupt(key Key) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, ok := p.runs[key]
	if !ok || r.limit == nil || r.status.Waits == "" {
		return false
	}
	r.limit.cancel(ErrGivesWay)
	return true
}

// bound starts the limit of a run's Execute. The caller must call end.
func (p *Pool) bound(r *run, cancel context.CancelCauseFunc) (end func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.limit = newLimit(cancel, r.status.Deadline, p.options.MaxWait, p.options.Clock.Now())
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		r.limit.timer.Stop()
		r.limit, r.status.Waits = nil, ""
	}
}
