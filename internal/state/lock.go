package state

import (
	"encoding/json"
	"fmt"
	"time"
)

// Lock records who may write a state. It is stored as JSON in an annotation of the head Secret.
type Lock struct {
	// Owner identifies one manager process. Another process in the same pod is another owner.
	Owner string `json:"owner"`
	// Run identifies one run of that owner.
	Run string `json:"run"`
	// Operation is what the run does, such as "create", for people.
	Operation string `json:"operation,omitempty"`
	// Since is when the lock was taken. Acquire sets it if zero.
	Since time.Time `json:"since"`
	// Epoch of the manager that took the lock, or zero without leader election.
	Epoch Epoch `json:"epoch,omitzero"`
}

// Holds reports whether both locks belong to the same run of the same owner.
func (l Lock) Holds(other Lock) bool { return l.Owner == other.Owner && l.Run == other.Run }

// Equal reports whether both locks are the same in every field.
func (l Lock) Equal(other Lock) bool {
	return l.Holds(other) && l.Operation == other.Operation && l.Since.Equal(other.Since) && l.Epoch == other.Epoch
}

// String returns a description for people.
func (l Lock) String() string {
	return fmt.Sprintf("%s of run %s by %s since %s", l.Operation, l.Run, l.Owner, l.Since.UTC().Format(time.RFC3339))
}

func (l Lock) encode() (string, error) {
	raw, err := json.Marshal(l)
	if err != nil {
		return "", fmt.Errorf("encoding the lock: %w", err)
	}
	return string(raw), nil
}

// decodeLock returns nil if no lock is held. An unreadable lock is an error and never counts as
// free.
func decodeLock(annotations map[string]string) (*Lock, error) {
	text, ok := annotations[annotationLock]
	if !ok {
		return nil, nil
	}
	lock := &Lock{}
	if err := json.Unmarshal([]byte(text), lock); err != nil {
		return nil, &AnnotationError{Name: annotationLock, Fix: removeIdle, Err: err}
	}
	return lock, nil
}
