package store

import (
	"errors"
	"fmt"
)

// ErrNotFound means that the store does not have a module.
var ErrNotFound = errors.New("the module is not in the store")

// DamagedError means that a stored module is corrupt, or that this version of the operator cannot
// read it.
type DamagedError struct {
	// Secret is the module's Secret, as namespace/name.
	Secret string
	// Err is what is wrong.
	Err error
}

// Error implements error.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("the module in Secret %s is unusable: %s; restore the Secret from a backup", e.Secret, e.Err)
}

// Unwrap returns Err.
func (e *DamagedError) Unwrap() error { return e.Err }

// UnprovenError means that a stored module is not proven to have been stored by a manager with a
// key.
type UnprovenError struct {
	// Secret is the module's Secret, as namespace/name.
	Secret string
}

// Error implements error.
func (e *UnprovenError) Error() string {
	return fmt.Sprintf("the module in Secret %s is not trusted and is not used: it is not signed with a key of --module-key-file, and this program has not loaded it; "+
		"if you know where it comes from, sign it with 'kubectl machine module sign' and pass the key with --module-key-file, or load the module with --module-dir or --module-source", e.Secret)
}

// IsUnproven reports whether err means that a module is stored but not proven.
func IsUnproven(err error) bool {
	_, unproven := errors.AsType[*UnprovenError](err)
	return unproven
}

// IsMissing reports whether err means that a module is unavailable and retrying does not help.
func IsMissing(err error) bool {
	_, damaged := errors.AsType[*DamagedError](err)
	return damaged || errors.Is(err, ErrNotFound)
}
