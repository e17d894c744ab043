package leadership

import (
	"fmt"
	"time"
)

// The defaults are machine-api-operator's. They outlast an API server that is away for a minute.
const (
	DefaultLease = 137 * time.Second
	defaultRenew = 107 * time.Second
	defaultRetry = 26 * time.Second
)

const (
	// minMargin leaves a second for a heartbeat: less, and a busy machine would look like one that stands still.
	minMargin = 3 * time.Second
	// jitter is what client-go adds to the retry period, at most.
	jitter = 1.2
)

// Timing is how long who waits for whom.
type Timing struct {
	// Lease is how long another candidate waits after the last renewal that it saw, before it takes over.
	Lease time.Duration
	// Renew is for how long after the beginning of its last renewal a leader acts.
	Renew time.Duration
	// Retry is how often a leader renews and a candidate looks.
	Retry time.Duration
	// Heartbeat is how long a supervisor waits for a heartbeat before it interrupts the engines.
	Heartbeat time.Duration
	// Grace is how long interrupted engines have before they are killed.
	Grace time.Duration
}

// NewTiming checks durations and derives the others. Renew and retry are derived from lease where they are zero. The errors name the
// manager's flags.
func NewTiming(lease, renew, retry time.Duration) (Timing, error) {
	if renew == 0 {
		renew = scale(lease, defaultRenew)
	}
	if retry == 0 {
		retry = scale(lease, defaultRetry)
	}
	t := Timing{Lease: lease, Renew: renew, Retry: retry, Heartbeat: (lease - renew) / 3, Grace: (lease - renew) / 2}
	return t, t.check()
}

func scale(lease, standard time.Duration) time.Duration {
	return time.Duration(float64(lease) / float64(DefaultLease) * float64(standard)).Round(time.Millisecond)
}

func (t Timing) check() error {
	const lease, renew, retry = "--leader-elect-lease-duration", "--leader-elect-renew-deadline", "--leader-elect-retry-period"
	switch {
	case t.Lease%time.Second != 0:
		return fmt.Errorf("%s is %s; a Lease counts whole seconds, choose such", lease, t.Lease)
	case t.Retry <= 0 || t.Renew <= 0:
		return fmt.Errorf("%s is %s and %s is %s; neither may be less than zero", renew, t.Renew, retry, t.Retry)
	case time.Duration(jitter*float64(t.Retry)) >= t.Renew:
		return fmt.Errorf("%s is %s and %s is %s: a leader would give up before it has tried twice; the deadline must be more than %g times the period",
			renew, t.Renew, retry, t.Retry, jitter)
	case t.Lease-t.Renew < minMargin:
		return fmt.Errorf("%s is %s and %s is %s, which leaves %s to end the engines of a leader that went silent; leave %s or more",
			lease, t.Lease, renew, t.Renew, t.Lease-t.Renew, minMargin)
	case t.DeadAfter() > t.Lease:
		return fmt.Errorf("engines end %s after the last renewal, and %s is %s: another would lead beside them", t.DeadAfter(), lease, t.Lease)
	}
	return nil
}

// DeadAfter is how long after its manager's last renewal an engine is dead at the latest.
func (t Timing) DeadAfter() time.Duration { return t.Renew + t.Heartbeat + t.Grace }
