package runs

import (
	"errors"
	"time"
)

// throttle slows the runs of a credential whose requests the infrastructure throttles.
type throttle struct {
	// since is when the throttling began, last when it was last noticed, until the end of the pause.
	since, last, until time.Time
	// most bounds the running runs after the pause.
	most int
	// strikes grows with each throttled run and shrinks with each success.
	strikes int
}

// throttled reports whether the infrastructure rejected an operation because of too many requests,
// and for how long it asks to send none.
func throttled(outcome error) (wait time.Duration, ok bool) {
	failed, ok := errors.AsType[interface {
		error
		Throttled() (wait time.Duration, ok bool)
	}](outcome)
	if !ok {
		return 0, false
	}
	return failed.Throttled()
}

// heed adjusts the pace of the run's credential to the outcome of its Execute. A run that started
// before the throttling was last noticed can only prolong the pause.
func (p *Pool) heed(r *run, outcome error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, t := p.options.Clock.Now(), p.queue.throttles[r.Credential]
	asked, rejected := throttled(outcome)
	switch {
	case r.Credential == "":
	case t != nil && r.status.StartedAt.Before(t.last):
		if rejected {
			p.hold(t, now.Add(asked))
		}
	case rejected:
		if t == nil {
			t = &throttle{since: now}
			p.queue.throttles[r.Credential] = t
		}
		t.strikes++
		t.most, t.last = 1, now
		p.hold(t, now.Add(max(asked, pause(t.strikes, p.options.RetryBase, p.options.RetryMax))))
	case t != nil: // a request was answered, if only by a refusal
		if outcome == nil {
			t.strikes = max(0, t.strikes-1)
		}
		if t.most++; t.most >= p.options.MaxConcurrent {
			delete(p.queue.throttles, r.Credential)
		}
	}
}

// hold lets no run of a credential start before a time. It never shortens a pause. The caller holds
// the lock.
func (p *Pool) hold(t *throttle, until time.Time) {
	if !until.After(t.until) {
		return
	}
	t.until = until
	time.AfterFunc(until.Sub(p.options.Clock.Now()), p.redispatch)
}

func (p *Pool) redispatch() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dispatch()
}

// throttledFor returns for how long each throttled credential has been so.
func (p *Pool) throttledFor() map[string]time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, lasted := p.options.Clock.Now(), map[string]time.Duration{}
	for credential, t := range p.queue.throttles {
		lasted[credential] = now.Sub(t.since)
	}
	return lasted
}
