package state

import (
	"encoding/json"
	"fmt"
	"time"
)

// Lock says who may write a state. It is kept as JSON in an annotation of the head Secret.
type Lock struct {
	// Owner is the identity of one manager process; another process, even in the same pod, is another owner.
	Owner string `json:"owner"`
	// Run is the identity of one run of that owner.
	Run string `json:"run"`
	// Operation says for people what the run does, such as "create".
	Operation string `json:"operation,omitempty"`
	// Since is when the lock was taken. Acquire fills it from its clock when zero.
	Since time.Time `json:"since"`
	// Epoch of the manager that took the lock, zero where it leads nothing.
	Epoch Epoch `json:"epoch,omitzero"`
}

// Holds reports whether both locks are the same run of the same owner.
func (l Lock) Holds(other Lock) bool { return l.Owner == other.Owner && l.Run == other.Run }

// Equal reports whether both locks are the same in every field.
func (l Lock) Equal(other Lock) bool {
	return l.Holds(other) && l.Operation == other.Operation && l.Since.Equal(other.Since) && l.Epoch == other.Epoch
}

// String describes the lock for people.
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

// decodeLock returns nil when no lock is held. A lock that cannot be read is an error, never a free state.
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
