package state

import (
	"encoding/json"
	"fmt"
)

// Epoch is one term of one leader: its Lease, the Lease's number of transitions, and the holder.
// Engines run in their manager's epoch, and each lock and each write of a state carries it.
type Epoch struct {
	// Lease is the UID of the Lease, or empty without leader election.
	Lease string `json:"lease,omitempty"`
	// Transitions is the Lease's leaseTransitions.
	Transitions int64 `json:"transitions,omitempty"`
	// Holder is the identity of the manager process.
	Holder string `json:"holder,omitempty"`
}

// String returns a description for people.
func (e Epoch) String() string {
	if e.Lease == "" {
		return "an epoch without a Lease"
	}
	return fmt.Sprintf("epoch %d of Lease %s, held by %s", e.Transitions, e.Lease, e.Holder)
}

// Before reports whether e is an earlier epoch of the same Lease. Epochs of different Leases are
// not ordered: the Lease that exists now decides which of them has ended.
func (e Epoch) Before(other Epoch) bool {
	return e.Lease != "" && e.Lease == other.Lease && e.Transitions < other.Transitions
}

// applyEpoch records the epoch of a write. An epoch without a Lease has no order, so it does not
// replace one with a Lease.
func applyEpoch(annotations map[string]string, epoch Epoch) error {
	if epoch.Lease == "" {
		return nil
	}
	raw, err := json.Marshal(epoch)
	if err != nil {
		return fmt.Errorf("encoding the epoch: %w", err)
	}
	annotations[annotationEpoch] = string(raw)
	return nil
}

// decodeEpoch returns the epoch of the head's last writer, or zero if none is recorded.
func decodeEpoch(annotations map[string]string) (Epoch, error) {
	text, ok := annotations[annotationEpoch]
	if !ok {
		return Epoch{}, nil
	}
	var epoch Epoch
	if err := json.Unmarshal([]byte(text), &epoch); err != nil {
		return Epoch{}, &AnnotationError{Name: annotationEpoch, Fix: removeIdle, Err: err}
	}
	return epoch, nil
}

// superseded returns a *SupersededError if a later leader than mine has locked or written the head.
// Epochs up to refuted do not count.
func superseded(key Key, mine, refuted, written Epoch, held *Lock) error {
	if held == nil {
		held = &Lock{}
	}
	for _, met := range []Epoch{held.Epoch, written} {
		if mine.Before(met) && met != refuted && !met.Before(refuted) {
			return &SupersededError{Key: key, Held: met}
		}
	}
	return nil
}
