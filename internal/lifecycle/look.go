package lifecycle

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

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
	// Failed says that the last look has failed.
	Failed bool
	// Gone is when a look did not find the instance; zero for never.
	Gone time.Time
}

// Missed reports whether the last look did not find the instance.
func (l Look) Missed() bool { return !l.Gone.IsZero() && !l.Gone.Before(l.Since) }

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
		next = s.look.Since.Add(inTurn(s.look.Since, s.look.Every, s.uid))
	}
	if after := checked.Add(inTurn(checked, s.look.Every, s.uid)); after.After(next) {
		return after
	}
	return next
}

// Looks are the looks at instances of one process, by the UIDs of Machines. The zero value has none.
type Looks struct {
	mu    sync.Mutex
	byUID map[types.UID]Look
}

// Of returns the looks at the instance of a Machine whose module has it looked at so often, and begins to keep account of them.
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

// Known returns the looks that account is kept of; zero for none.
func (l *Looks) Known(uid types.UID) Look {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byUID[uid]
}

// Submitted notes that a look was submitted.
func (l *Looks) Submitted(uid types.UID, now time.Time) {
	l.change(uid, func(look *Look) { look.Since, look.Made = now, true })
}

// Ended notes whether a look has failed.
func (l *Looks) Ended(uid types.UID, outcome error) {
	l.change(uid, func(look *Look) { look.Failed = outcome != nil })
}

// Missed notes that a look did not find the instance.
func (l *Looks) Missed(uid types.UID, now time.Time) {
	l.change(uid, func(look *Look) { look.Gone = now })
}

// Forget drops what is kept of a Machine.
func (l *Looks) Forget(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byUID, uid)
}

// change changes what is kept of a Machine, where anything is.
func (l *Looks) change(uid types.UID, with func(*Look)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if look, known := l.byUID[uid]; known {
		with(&look)
		l.byUID[uid] = look
	}
}
