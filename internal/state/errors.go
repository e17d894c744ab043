package state

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrNotFound means that the key has no state, or no such version.
	ErrNotFound = errors.New("state not found")
	// ErrFenced means that the session lost its lock or that another writer changed the state. The
	// session wrote nothing and never will again.
	ErrFenced = errors.New("state session is fenced off: another writer has the state")
	// ErrClosed means that the session was released or its state deleted.
	ErrClosed = errors.New("state session is closed")
)

// LockedError means that another run holds the lock.
type LockedError struct {
	// Key of the state.
	Key Key
	// Lock that is held.
	Lock Lock
}

func (e *LockedError) Error() string { return fmt.Sprintf("state %s is locked: %s", e.Key, e.Lock) }

// SupersededError means that a later leader has locked or written the state, so this process no
// longer leads. It wraps ErrFenced.
type SupersededError struct {
	// Key of the state.
	Key Key
	// Held is the epoch of the later leader.
	Held Epoch
}

func (e *SupersededError) Error() string {
	return fmt.Sprintf("state %s belongs to a later leader, %s", e.Key, e.Held)
}

// Unwrap returns ErrFenced.
func (e *SupersededError) Unwrap() error { return ErrFenced }

// CorruptError means that a stored state cannot be read.
type CorruptError struct {
	// Key of the state.
	Key Key
	// Detail is what is wrong.
	Detail string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("cannot read state %s: %s; see docs/contracts/state.md for how to restore an earlier version",
		e.Key, e.Detail)
}

// AnnotationError means that an annotation of the head is invalid because it was edited by hand.
type AnnotationError struct {
	// Name of the annotation.
	Name string
	// Fix is the advice to the user.
	Fix string
	// Err is the parse error.
	Err error
}

func (e *AnnotationError) Error() string {
	return fmt.Sprintf("reading annotation %s: %v; %s", e.Name, e.Err, e.Fix)
}

// Unwrap returns the parse error.
func (e *AnnotationError) Unwrap() error { return e.Err }

// removeIdle is the advice for an invalid annotation that runs depend on.
const removeIdle = "if no run is active, remove the annotation"

// ResourcesRemainError means that a state cannot be deleted because it still lists managed resources.
type ResourcesRemainError struct {
	// Key of the state.
	Key Key
	// Addresses of the resources.
	Addresses []string
}

func (e *ResourcesRemainError) Error() string {
	return fmt.Sprintf("refusing to delete state %s: it still contains %s; destroy them first", e.Key,
		strings.Join(e.Addresses, ", "))
}

// UnavailableError means that the API server did not respond in time. A write may or may not have
// happened; the session finds out at its next call. Retrying helps.
type UnavailableError struct {
	// Doing is the operation that failed.
	Doing string
	// Err is the last response.
	Err error
}

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("%s: API server unavailable: %v", e.Doing, e.Err)
}

// Unwrap returns the last response.
func (e *UnavailableError) Unwrap() error { return e.Err }
