package orphans

import (
	"time"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// findings summarizes the heads of all states.
type findings struct {
	// intent is the age of the oldest intent; lock is the age of the oldest lock held by another
	// process.
	intent, lock time.Duration
	// largest is the size of the largest state.
	largest int
	// drifted counts Machines by the result of their last drift check.
	drifted map[record.DriftResult]int
}

// findingsOf summarizes the heads of states. owner identifies this process in locks. Unreadable
// heads are skipped.
func findingsOf(heads []state.Head, owner string, now time.Time) findings {
	found := findings{drifted: map[record.DriftResult]int{}}
	for _, head := range heads {
		found.largest = max(found.largest, head.Size)
		if head.Lock != nil && head.Lock.Owner != owner {
			found.lock = max(found.lock, now.Sub(head.Lock.Since))
		}
		read, err := record.Read(head.Meta)
		if err != nil {
			continue
		}
		if read.Intent != nil {
			found.intent = max(found.intent, now.Sub(read.Intent.Since))
		}
		if read.Check != nil {
			found.drifted[read.Check.Result]++
		}
	}
	return found
}
