package runs

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// ErrWaited is the cause with which a task is cancelled that has waited for something outside of this process for too long.
var ErrWaited = errors.New("the run has waited for too long")

// ErrGivesWay is the cause with which a task is cancelled that waits for something outside of this process, when it is not wanted any more.
var ErrGivesWay = errors.New("the run is not wanted any more")

// Interrupted reports whether a run has ended because it was to, and not by a failure of its own.
func Interrupted(outcome error) bool {
	return errors.Is(outcome, ErrStopping) || errors.Is(outcome, ErrGivesWay)
}

// limit bounds Execute of one run. The time that the run waits for something outside of this process counts apart. The pool's lock protects it.
type limit struct {
	cancel context.CancelCauseFunc
	timer  *time.Timer
	// work and wait are what is left of the two times, and since is when the one that counts now began to.
	work, wait time.Duration
	since      time.Time
}

// newLimit returns the limit of a run that begins to work.
func newLimit(cancel context.CancelCauseFunc, work, wait time.Duration, now time.Time) *limit {
	l := &limit{cancel: cancel, work: work, wait: wait, since: now}
	l.timer = time.AfterFunc(work, func() { cancel(ErrDeadline) })
	return l
}

// change has the other time count. One that is used up by now has cancelled the run, or is about to.
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

// Waits notes what a Machine's run waits for outside of this process while it executes, such as a queue of the cluster; nothing when it goes on.
// That time is none of the run's deadline: it has a bound of its own. The Machine is woken when it begins and when it ends.
func (p *Pool) Waits(uid types.UID, what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, ok := p.runs[uid]
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
	default: // it is reconciled from time to time as well
	}
}

// Interrupt ends a Machine's run that waits for something outside of this process, as it is not wanted any more. It reports false when none does.
func (p *Pool) Interrupt(uid types.UID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, ok := p.runs[uid]
	if !ok || r.limit == nil || r.status.Waits == "" {
		return false
	}
	r.limit.cancel(ErrGivesWay)
	return true
}

// bound bounds the Execute of a run, which ends with end.
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
