package lifecycle

import (
	"fmt"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/render"
)

// maxRepairPause bounds the pause between repairs of an instance that drifts again and again, unless drift checks are rarer.
const maxRepairPause = 24 * time.Hour

// DriftSetting is what a Machine asks to be done about drift.
type DriftSetting struct {
	Policy v1alpha1.DriftPolicy
	// Misread says why the policy is not the one that the Machine names; empty when it is.
	Misread string
}

// DriftOf returns what a Machine asks to be done about drift. A policy that cannot be read is Report.
func DriftOf(machine *machinev1beta1.Machine) DriftSetting {
	policy, err := render.DriftPolicy(machine)
	if err != nil {
		return DriftSetting{Policy: v1alpha1.DriftReport, Misread: err.Error()}
	}
	return DriftSetting{Policy: policy}
}

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

// until returns when the next repair may be: twice as long after each, from two intervals on.
func (r *Repair) until(interval time.Duration) time.Time {
	pause, limit := interval, max(interval, maxRepairPause)
	for i := 0; i < r.Count && pause < limit; i++ {
		pause *= 2
	}
	return r.At.Add(min(pause, limit))
}

// repairDue reports whether an instance is to be brought back now: a check after the last repair found it changed, and its pause is over.
func repairDue(f *Facts, interval time.Duration, now time.Time) bool {
	last, found := f.Record.Repair, f.Record.Check
	if f.Drift.Policy != v1alpha1.DriftRepair || found == nil || found.Result != DriftChanged {
		return false
	}
	return last == nil || found.At.After(last.At) && !now.Before(last.until(interval))
}

// Message describes the repair and when the next one may be, for people.
func (r *Repair) Message(interval time.Duration) string {
	next := r.until(interval).UTC().Format(time.RFC3339)
	if r.Refused != "" {
		return fmt.Sprintf("it is not brought back: %s; that is tried again after %s if a check finds it so still", r.Refused, next)
	}
	return fmt.Sprintf("it has been brought back and changed again, %d times in a row; the next time is after %s", r.Count, next)
}
