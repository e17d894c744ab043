package record

import (
	"strings"
	"time"
)

const (
	// MaxSkew bounds the clock skew between managers. A recorded time further in the future did not
	// come from a manager.
	MaxSkew = 5 * time.Minute
	// maxSecondLook is the maximum delay of a second look: the longest settlement period of a
	// module.
	maxSecondLook = time.Hour
	// maxText bounds a text for people. Engines and providers return texts of any length, and a
	// Secret's annotations share 256 KiB.
	maxText = 4 << 10
	// maxRequest bounds the recorded value of CheckDriftAnnotation.
	maxRequest = 128
)

// Believed returns the record without times in the future, which no manager wrote and which would
// block the Machine forever. Work that depends on such a time is repeated: an instance is looked
// up, compared or searched for again. now is the reader's time.
func (r Record) Believed(now time.Time) Record {
	latest := now.Add(MaxSkew)
	if r.Intent != nil && r.Intent.Died.After(latest) {
		unsettled := *r.Intent
		unsettled.Died, unsettled.Looked = time.Time{}, false
		r.Intent = &unsettled
	}
	if r.Check != nil && r.Check.At.After(latest) {
		r.Check = nil
	}
	if r.Repair != nil && (r.Repair.At.After(latest) || r.Repair.Count < 0) {
		r.Repair = nil
	}
	if r.SecondLook != nil && r.SecondLook.After(latest.Add(maxSecondLook)) {
		r.SecondLook = &now
	}
	if plan := r.AdoptionPlan; plan != nil && (plan.At.After(latest) || plan.Absent.After(latest)) {
		undated := *plan
		undated.At, undated.Absent = time.Time{}, time.Time{}
		r.AdoptionPlan = &undated
	}
	return r
}

// CheckRequest returns a Machine's request for a drift check, truncated to a sane length, or "".
func CheckRequest(annotations map[string]string) string {
	text := annotations[CheckDriftAnnotation]
	return strings.ToValidUTF8(text[:min(len(text), maxRequest)], "")
}
