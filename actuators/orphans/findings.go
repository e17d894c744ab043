package orphans

import (
	"time"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// findings are what the heads of all states say about them together.
type findings struct {
	// intent and lock are ages: of the oldest intent, and of the oldest lock that another process than the owner holds.
	intent, lock time.Duration
	// largest is the size of the largest state.
	largest int
	// drifted counts Machines by what their last drift check found.
	drifted map[record.DriftResult]int
}

// findingsOf reads the heads of states. owner is this process in locks; a head that cannot be read is left out.
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
