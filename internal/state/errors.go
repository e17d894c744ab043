package state

import (
	"errors"
	"fmt"
	"strings"

	"github.com/machine-iac/machine-iac-operator/internal/state/layout"
)

var (
	// ErrNotFound says that there is no state, or no such version of it, under the key.
	ErrNotFound = errors.New("state not found")
	// ErrFenced says that the session lost its lock or that somebody else wrote the state. The session wrote nothing and
	// never will again.
	ErrFenced = errors.New("state session is fenced off: another writer has the state")
	// ErrClosed says that the session was released or its state deleted.
	ErrClosed = errors.New("state session is closed")
)

// LockedError says that somebody else holds the lock.
type LockedError struct {
	// Key of the state.
	Key Key
	// Lock that is held.
	Lock Lock
}

func (e *LockedError) Error() string { return fmt.Sprintf("state %s is locked: %s", e.Key, e.Lock) }

// SupersededError says that a later leader has locked or written the state: this process leads no more. It is an ErrFenced.
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

// CorruptError says that what is stored cannot be read back.
type CorruptError struct {
	// Key of the state.
	Key Key
	// Detail says what is wrong.
	Detail string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("state %s cannot be read: %s; docs/contracts/state.md describes how to restore an earlier version", e.Key, e.Detail)
}

// AnnotationError says that an annotation of the head cannot be read, which has been edited by hand. Whoever edited it must correct it.
type AnnotationError struct {
	// Name of the annotation.
	Name string
	// Fix says what to do.
	Fix string
	// Err is what is wrong with its text.
	Err error
}

func (e *AnnotationError) Error() string {
	return fmt.Sprintf("reading annotation %s: %v; %s", e.Name, e.Err, e.Fix)
}

// Unwrap returns what is wrong with the text.
func (e *AnnotationError) Unwrap() error { return e.Err }

// removeIdle is what to do about an annotation that runs depend on.
const removeIdle = "if no run is active, remove the annotation"

// FormatError says that a newer operator wrote the head, in a layout that this one does not know. Nothing was read or changed.
type FormatError = layout.FormatError

// ResourcesRemainError says that a state cannot be deleted because it still lists managed resources.
type ResourcesRemainError struct {
	// Key of the state.
	Key Key
	// Addresses of the resources.
	Addresses []string
}

func (e *ResourcesRemainError) Error() string {
	return fmt.Sprintf("refusing to delete state %s: it still lists %s; destroy them first", e.Key, strings.Join(e.Addresses, ", "))
}

// UnavailableError says that the API server did not respond in time. A write may or may not have happened;
// the session finds out at its next call. A retry helps.
type UnavailableError struct {
	// Doing is what was tried.
	Doing string
	// Err is the last response.
	Err error
}

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("%s: the API server is not available: %v", e.Doing, e.Err)
}

// Unwrap returns the last response.
func (e *UnavailableError) Unwrap() error { return e.Err }
