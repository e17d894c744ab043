package state

import (
	"encoding/json"
	"fmt"
)

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
// decides which one is over.
func (e Epoch) Before(other Epoch) bool {
	return e.Lease != "" && e.Lease == other.Lease && e.Transitions < other.Transitions
}

// applyEpoch records the epoch of a write. One without a Lease has no order, so it leaves the last that had one.
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

// decodeEpoch returns the epoch of the head's last writer, zero when none is recorded.
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

// superseded returns a *SupersededError when a later leader than mine has locked or written the head.
func superseded(key Key, mine Epoch, written Epoch, held *Lock) error {
	if held != nil && mine.Before(held.Epoch) {
		return &SupersededError{Key: key, Held: held.Epoch}
	}
	if mine.Before(written) {
		return &SupersededError{Key: key, Held: written}
	}
	return nil
}
