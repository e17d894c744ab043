package lifecycle

import (
	"time"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
)

// Look is what one process knows of its looks at an instance, by which it finds between drift checks that the instance is gone. It is not stored: the next
// process looks for itself.
type Look struct {
	// Every is the time between two looks, as the module says; zero where none are made.
	Every time.Duration
	// Since is when the last look was submitted or, before the first, when this process saw the Machine.
	Since time.Time
	// Made says that there was a look.
	Made bool
	// Gone is when a look did not find the instance; zero for never.
	Gone time.Time
}

// WithLook returns the schedule with looks at the instance between drift checks.
func (s Schedule) WithLook(look Look) Schedule {
	s.look = look
	return s
}

// lookDue reports whether it is to be looked whether the instance is still there. The drift policy does not matter: it says what becomes of changes.
func (s Schedule) lookDue(f *Facts, now time.Time) bool {
	if s.look.Every <= 0 || f.Record.Check == nil || !f.Exists() {
		return false
	}
	return !now.Before(s.lookAt(f.Record.Check.At))
}

// nextLook returns when the next look of the Machine of a provider status is due; zero for never.
func (s Schedule) nextLook(status *v1alpha1.TerraformMachineProviderStatus) time.Time {
	if s.look.Every <= 0 || status.LastDriftCheckTime == nil {
		return time.Time{}
	}
	return s.lookAt(status.LastDriftCheckTime.Time)
}

// lookAt returns when the next look is due, after a drift check, which counts as one. The first looks of a process are spread over an eighth of the time
// between two, so that a change of leaders delays them by no more.
func (s Schedule) lookAt(checked time.Time) time.Time {
	next := s.look.Since.Add(spread(s.look.Every/8, s.uid))
	if s.look.Made {
		next = s.look.Since.Add(driftAfter(s.look.Every, s.uid))
	}
	if after := checked.Add(driftAfter(s.look.Every, s.uid)); after.After(next) {
		return after
	}
	return next
}
