package state

import "fmt"

// Epoch is one term of one leader: the Lease that it leads by, how often that had changed hands by then, and who holds it. Engines run in
// the epoch of their manager, and each lock and each write of a state carries it.
type Epoch struct {
	// Lease is the UID of the Lease; empty for a manager that runs without leader election.
	Lease string `json:"lease,omitempty"`
	// Transitions is the Lease's leaseTransitions.
	Transitions int64 `json:"transitions,omitempty"`
	// Holder is the identity of the manager process.
	Holder string `json:"holder,omitempty"`
}

// String describes the epoch for people.
func (e Epoch) String() string {
	if e.Lease == "" {
		return "an epoch without a Lease"
	}
	return fmt.Sprintf("epoch %d of Lease %s, held by %s", e.Transitions, e.Lease, e.Holder)
}

// Before reports whether e is an earlier epoch of the same Lease. Epochs of different Leases have no order: the Lease that is there now
// tells which one is over.
func (e Epoch) Before(other Epoch) bool {
	return e.Lease != "" && e.Lease == other.Lease && e.Transitions < other.Transitions
}
