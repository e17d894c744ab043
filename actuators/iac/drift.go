package iac

import (
	"fmt"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/render"
)

// longestRepairPause bounds how long an instance that drifts again and again is left as it is, unless drift checks are rarer.
const longestRepairPause = 24 * time.Hour

// drift is what a Machine says of drift.
type drift struct {
	policy v1alpha1.DriftPolicy
	// misread says why the policy is not the one that the Machine names; empty when it is.
	misread string
}

// driftOf answers what a Machine says of drift. One that cannot be understood has its drift reported.
func driftOf(machine *machinev1beta1.Machine) drift {
	policy, err := render.DriftPolicy(machine)
	if err != nil {
		return drift{policy: v1alpha1.DriftReport, misread: err.Error()}
	}
	return drift{policy: policy}
}

// repair remembers that an instance was brought back, or could not be, so that one that drifts at once is not brought back without end.
type repair struct {
	At time.Time `json:"at"`
	// Count is how often that was without a check in between that found the instance as it should be.
	Count int `json:"count"`
	// Refused says why the instance could not be brought back in place; empty when it was.
	Refused string `json:"refused,omitempty"`
}

// next answers the repair that follows r, which may be nil.
func (r *repair) next(now time.Time, refused string) repair {
	following := repair{At: now.UTC(), Count: 1, Refused: refused}
	if r != nil {
		following.Count = r.Count + 1
	}
	return following
}

// until answers when the next repair may be: twice as long after each, from two intervals on.
func (r *repair) until(interval time.Duration) time.Time {
	pause, limit := interval, max(interval, longestRepairPause)
	for i := 0; i < r.Count && pause < limit; i++ {
		pause *= 2
	}
	return r.At.Add(min(pause, limit))
}

// repairDue reports whether an instance is to be brought back now: a check after the last repair found it changed, and its pause is over.
func repairDue(f *facts, interval time.Duration, now time.Time) bool {
	last, found := f.record.Repair, f.record.Check
	if f.drift.policy != v1alpha1.DriftRepair || found == nil || found.Verdict != verdictChanged {
		return false
	}
	return last == nil || found.At.After(last.At) && !now.Before(last.until(interval))
}

// driftCondition tells what the last check found and what comes of it; nil before the first.
func driftCondition(f *facts, interval time.Duration, now time.Time) *metav1.Condition {
	told := &metav1.Condition{Type: drifted, LastTransitionTime: metav1.NewTime(now.Truncate(time.Second))}
	found, last := f.record.Check, f.record.Repair
	if f.drift.policy == v1alpha1.DriftIgnore && (found == nil || found.Verdict != verdictMissing) {
		told.Status, told.Reason, told.Message = metav1.ConditionUnknown, "Ignored", "drift is not looked for, nor an instance that is gone: the drift policy is Ignore"
		return told
	}
	if found == nil {
		return nil
	}
	told.LastTransitionTime = metav1.NewTime(found.At.Truncate(time.Second))
	told.Status, told.Reason = metav1.ConditionFalse, "AsApplied"
	if found.Verdict != verdictNone {
		told.Status, told.Reason, told.Message = metav1.ConditionTrue, "Instance"+string(found.Verdict), found.Summary
	}
	if found.Verdict == verdictChanged && f.drift.policy == v1alpha1.DriftRepair && last != nil {
		told.Message += "; " + last.told(interval)
	}
	if f.drift.misread != "" {
		told.Message = joined(told.Message, f.drift.misread+"; until then drift is reported")
	}
	return told
}

// told says what repairs have come to.
func (r *repair) told(interval time.Duration) string {
	next := r.until(interval).UTC().Format(time.RFC3339)
	if r.Refused != "" {
		return fmt.Sprintf("it is not brought back: %s; that is tried again after %s if a check finds it so still", r.Refused, next)
	}
	return fmt.Sprintf("it has been brought back and changed again, %d times in a row; the next time is after %s", r.Count, next)
}

// joined puts what is not empty behind one another.
func joined(first, second string) string {
	if first == "" {
		return second
	}
	return first + "; " + second
}
