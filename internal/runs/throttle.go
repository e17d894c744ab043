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

// throttled reports whether the infrastructure rejected an operation because of too many requests.
func throttled(outcome error) bool {
	failed, ok := errors.AsType[interface {
		error
		Throttled() bool
	}](outcome)
	return ok && failed.Throttled()
}

// heed adjusts the pace of the run's credential to the outcome of its Execute. A run that started
// before the throttling was last noticed tells nothing new.
func (p *Pool) heed(r *run, outcome error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, t := p.options.Clock.Now(), p.queue.throttles[r.Credential]
	switch {
	case r.Credential == "", t != nil && r.status.StartedAt.Before(t.last):
	case throttled(outcome):
		if t == nil {
			t = &throttle{since: now}
			p.queue.throttles[r.Credential] = t
		}
		t.strikes++
		wait := pause(t.strikes, p.options.RetryBase, p.options.RetryMax)
		t.most, t.last, t.until = 1, now, now.Add(wait)
		time.AfterFunc(wait, p.redispatch)
	case t != nil: // a request was answered, if only by a refusal
		if outcome == nil {
			t.strikes = max(0, t.strikes-1)
		}
		if t.most++; t.most >= p.options.MaxConcurrent {
			delete(p.queue.throttles, r.Credential)
		}
	}
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
