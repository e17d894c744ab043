package leadership

import (
	"fmt"
	"time"
)

// The defaults match machine-api-operator's. They tolerate an API server that is unavailable for a
// minute.
const (
	DefaultLease = 137 * time.Second
	defaultRenew = 107 * time.Second
	defaultRetry = 26 * time.Second
)

const (
	// minMargin leaves a second for a heartbeat. With less, a busy machine would look suspended.
	minMargin = 3 * time.Second
	// jitter is client-go's maximum factor for the retry period.
	jitter = 1.2
)

// Timing holds the timeouts of leader election and of engines.
type Timing struct {
	// Lease is how long a candidate waits after the last renewal that it saw before it takes over.
	Lease time.Duration
	// Renew is how long a leader acts after the start of its last renewal.
	Renew time.Duration
	// Retry is the interval at which a leader renews and a candidate checks the Lease.
	Retry time.Duration
	// Heartbeat is how long a supervisor waits for a heartbeat before it interrupts the engines.
	Heartbeat time.Duration
	// Grace is how long interrupted engines have before they are killed.
	Grace time.Duration
}

// NewTiming validates durations and derives the others. Zero renew and retry are derived from
// lease. Errors name the manager's flags.
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
	const lease, renew, retry = "--leader-elect-lease-duration", "--leader-elect-renew-deadline",
		"--leader-elect-retry-period"
	switch {
	case t.Lease%time.Second != 0:
		return fmt.Errorf("invalid %s %s: must be in whole seconds", lease, t.Lease)
	case t.Retry <= 0 || t.Renew <= 0:
		return fmt.Errorf("invalid %s %s or %s %s: must not be negative", renew, t.Renew, retry, t.Retry)
	case time.Duration(jitter*float64(t.Retry)) >= t.Renew:
		return fmt.Errorf("%s (%s) must exceed %s (%s) by more than a factor of %g, so that a leader can retry",
			renew, t.Renew, retry, t.Retry, jitter)
	case t.Lease-t.Renew < minMargin:
		return fmt.Errorf("%s (%s) must exceed %s (%s) by at least %s, so that a lost leader's engines can be stopped in "+
			"time",
			lease, t.Lease, renew, t.Renew, minMargin)
	case t.DeadAfter() > t.Lease:
		return fmt.Errorf("engines may run for %s after the last renewal, which exceeds %s (%s): another leader would "+
			"start beside them", t.DeadAfter(), lease, t.Lease)
	}
	return nil
}

// DeadAfter is the maximum time after a manager's last renewal for which an engine lives.
func (t Timing) DeadAfter() time.Duration { return t.Renew + t.Heartbeat + t.Grace }
