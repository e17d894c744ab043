package lifecycle

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
)

// Look is one process's memory of its looks at an instance. Looks find a lost instance between
// drift checks. They are not stored: the next process starts anew.
type Look struct {
	// Every is the interval between looks that the module declares; zero for none.
	Every time.Duration
	// Since is when the last look was submitted or, before the first, when this process first saw
	// the Machine.
	Since time.Time
	// Made reports whether there was a look.
	Made bool
	// Failed reports whether the last look failed.
	Failed bool
	// Gone is when a look did not find the instance, or zero.
	Gone time.Time
}

// Missed reports whether the last look did not find the instance.
func (l Look) Missed() bool { return !l.Gone.IsZero() && !l.Gone.Before(l.Since) }

// WithLook returns the schedule with looks at the instance between drift checks.
func (s Schedule) WithLook(look Look) Schedule {
	s.look = look
	return s
}

// lookDue reports whether a look is due. The drift policy does not matter: it applies to changes,
// not to lost instances.
func (s Schedule) lookDue(f *Facts, now time.Time) bool {
	if s.look.Every <= 0 || f.Record.Check == nil || !f.Exists() {
		return false
	}
	return !now.Before(s.lookAt(f.Record.Check.At))
}

// nextLook returns when the next look is due, or zero for never.
func (s Schedule) nextLook(status *v1alpha1.TerraformMachineProviderStatus) time.Time {
	if s.look.Every <= 0 || status.LastDriftCheckTime == nil {
		return time.Time{}
	}
	return s.lookAt(status.LastDriftCheckTime.Time)
}

// lookAt returns when the next look is due. A drift check counts as a look. The first looks of a
// process are spread over an eighth of the interval, which bounds the delay that a change of
// leaders causes.
func (s Schedule) lookAt(checked time.Time) time.Time {
	next := s.look.Since.Add(spread(s.look.Every/8, s.uid))
	if s.look.Made {
		next = s.look.Since.Add(inTurn(s.look.Since, s.look.Every, s.uid))
	}
	if after := checked.Add(inTurn(checked, s.look.Every, s.uid)); after.After(next) {
		return after
	}
	return next
}

// Looks holds the looks of one process by Machine UID. The zero value is empty.
type Looks struct {
	mu    sync.Mutex
	byUID map[types.UID]Look
}

// Of returns the looks at a Machine's instance, and starts to track them if its module declares an
// interval.
func (l *Looks) Of(uid types.UID, every time.Duration, now time.Time) Look {
	l.mu.Lock()
	defer l.mu.Unlock()
	look, known := l.byUID[uid]
	if !known && every == 0 {
		return Look{}
	}
	if !known {
		look.Since = now
	}
	if l.byUID == nil {
		l.byUID = map[types.UID]Look{}
	}
	look.Every = every
	l.byUID[uid] = look
	return look
}

// Known returns the tracked looks at a Machine's instance, or zero.
func (l *Looks) Known(uid types.UID) Look {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byUID[uid]
}

// Submitted records that a look was submitted.
func (l *Looks) Submitted(uid types.UID, now time.Time) {
	l.change(uid, func(look *Look) { look.Since, look.Made = now, true })
}

// Ended records the outcome of a look.
func (l *Looks) Ended(uid types.UID, outcome error) {
	l.change(uid, func(look *Look) { look.Failed = outcome != nil })
}

// Missed records that a look did not find the instance.
func (l *Looks) Missed(uid types.UID, now time.Time) {
	l.change(uid, func(look *Look) { look.Gone = now })
}

// Forget drops a Machine's looks.
func (l *Looks) Forget(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byUID, uid)
}

// change updates the looks at a Machine's instance, if they are tracked.
func (l *Looks) change(uid types.UID, with func(*Look)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if look, known := l.byUID[uid]; known {
		with(&look)
		l.byUID[uid] = look
	}
}
