package store

import (
	"errors"
	"fmt"
)

// ErrNotFound says that the store does not have a module.
var ErrNotFound = errors.New("the module is not in the store")

// DamagedError says that what is stored of a module is not what was stored, or that this version of the operator cannot read it.
type DamagedError struct {
	// Secret is where it is stored, as namespace/name.
	Secret string
	// Err says what is wrong.
	Err error
}

// Error implements error.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("the module in Secret %s cannot be used: %s; put the Secret back from a backup", e.Secret, e.Err)
}

// Unwrap returns what is wrong.
func (e *DamagedError) Unwrap() error { return e.Err }

// UnprovenError says that what is stored of a module is not proven to be what a manager with a key has kept.
type UnprovenError struct {
	// Secret is where it is stored, as namespace/name.
	Secret string
}

// Error implements error.
func (e *UnprovenError) Error() string {
	return fmt.Sprintf("the module in Secret %s is not signed with a key of --module-key-file, so somebody else may have written it, and it is not used; "+
		"if you know where it is from, sign it with 'kubectl machine module sign'", e.Secret)
}

// IsUnproven reports whether err says that a module is stored and not proven.
func IsUnproven(err error) bool {
	_, unproven := errors.AsType[*UnprovenError](err)
	return unproven
}

// IsMissing reports whether err says that a module cannot be had, however often it is asked for.
func IsMissing(err error) bool {
	_, damaged := errors.AsType[*DamagedError](err)
	return damaged || errors.Is(err, ErrNotFound)
}
