package record

import (
	"fmt"
	"time"
)

// maxRepairPause bounds the pause between repairs of an instance that drifts again and again, unless drift checks are rarer.
const maxRepairPause = 24 * time.Hour

// Repair is a try to bring back an instance that has drifted. It is recorded, so that one that drifts at once is not repaired without end.
type Repair struct {
	At time.Time `json:"at"`
	// Count is how often that was without a check in between that found the instance as it should be.
	Count int `json:"count"`
	// Refused says why the instance could not be brought back in place; empty when it was.
	Refused string `json:"refused,omitempty"`
}

// Next returns the repair that follows r, which may be nil.
func (r *Repair) Next(now time.Time, refused string) Repair {
	following := Repair{At: now.UTC(), Count: 1, Refused: refused}
	if r != nil {
		following.Count = r.Count + 1
	}
	return following
}

// Until returns when the next repair may be: twice as long after each, from two intervals on.
func (r *Repair) Until(interval time.Duration) time.Time {
	pause, limit := interval, max(interval, maxRepairPause)
	for i := 0; i < r.Count && pause < limit; i++ {
		pause *= 2
	}
	return r.At.Add(min(pause, limit))
}

// Message describes the repair and when the next one may be, for people.
func (r *Repair) Message(interval time.Duration) string {
	next := r.Until(interval).UTC().Format(time.RFC3339)
	if r.Refused != "" {
		return fmt.Sprintf("it is not brought back: %s; that is tried again after %s if a check finds it so still", r.Refused, next)
	}
	return fmt.Sprintf("it has been brought back and changed again, %d times in a row; the next time is after %s", r.Count, next)
}
