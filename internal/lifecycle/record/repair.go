package record

import (
	"fmt"
	"time"
)

// maxRepairPause bounds the backoff between repairs of an instance that keeps drifting, unless
// drift checks are rarer.
const maxRepairPause = 24 * time.Hour

// Repair is an attempt to revert drift. It is recorded to back off from an instance that drifts
// again at once.
type Repair struct {
	At time.Time `json:"at"`
	// Count is the number of repairs without a clean check in between.
	Count int `json:"count"`
	// Refused says why the instance could not be repaired in place, or is empty.
	Refused string `json:"refused,omitempty"`
}

// Next returns the repair that follows r. r may be nil.
func (r *Repair) Next(now time.Time, refused string) Repair {
	following := Repair{At: now.UTC(), Count: 1, Refused: refused}
	if r != nil {
		following.Count = r.Count + 1
	}
	return following
}

// Until returns when the next repair may start. The backoff doubles after each repair and starts at
// two intervals.
func (r *Repair) Until(interval time.Duration) time.Time {
	pause, limit := interval, max(interval, maxRepairPause)
	for i := 0; i < r.Count && pause < limit; i++ {
		pause *= 2
	}
	return r.At.Add(min(pause, limit))
}

// Message describes the repair and the time of the next one, for people.
func (r *Repair) Message(interval time.Duration) string {
	next := r.Until(interval).UTC().Format(time.RFC3339)
	if r.Refused != "" {
		return fmt.Sprintf("drift not repaired: %s; next attempt after %s if the drift persists", r.Refused, next)
	}
	return fmt.Sprintf("repaired and drifted again %d times in a row; next repair after %s", r.Count, next)
}
