package termination

import (
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

// repeat is the minimum interval between logs of the same kind of error.
const repeat = time.Hour

// reporter logs recurring errors once per kind.
type reporter struct {
	clock clock.PassiveClock
	log   logr.Logger

	logged map[kind]time.Time
	// count is the number of failed requests since the last success. shown reports whether one of
	// them was logged.
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
	r.log.Error(err, "Retrying", "kind", of, "failed", r.count)
}

// recovered logs a success if the errors before it were logged.
func (r *reporter) recovered() {
	if r.shown {
		r.log.Info("Recovered", "failed", r.count)
	}
	r.count, r.shown = 0, false
}
