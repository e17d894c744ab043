package termination

import (
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

// repeat is after how long an error of a kind that was logged is logged again.
const repeat = time.Hour

// reporter logs errors that come with every request once per kind.
type reporter struct {
	clock clock.PassiveClock
	log   logr.Logger

	logged map[kind]time.Time
	// count is how many requests have failed since one succeeded, shown whether one of them was logged.
	count int
	shown bool
}

// failed logs an error, unless one of its kind was logged within the hour.
func (r *reporter) failed(err error) {
	r.count++
	of, now := kindOf(err), r.clock.Now()
	if at, known := r.logged[of]; known && now.Sub(at) < repeat {
		return
	}
	if r.logged == nil {
		r.logged = map[kind]time.Time{}
	}
	r.logged[of], r.shown = now, true
	r.log.Error(err, "Trying again", "kind", of, "failed", r.count)
}

// recovered logs that a request succeeded where the errors before it were logged.
func (r *reporter) recovered() {
	if r.shown {
		r.log.Info("It works again", "failed", r.count)
	}
	r.count, r.shown = 0, false
}
