package desired

import (
	"errors"
	"fmt"
)

// InvalidError says why a Machine cannot be rendered. Only a change of the Machine helps.
type InvalidError struct{ Message string }

// Error implements error.
func (e *InvalidError) Error() string { return e.Message }

// invalid makes err an InvalidError.
func invalid(err error) error { return &InvalidError{Message: err.Error()} }

// IsInvalid reports whether err is, or wraps, an InvalidError.
func IsInvalid(err error) bool {
	_, ok := errors.AsType[*InvalidError](err)
	return ok
}

// SecretError says what a Machine needs beside itself that is missing or cannot be used: a Secret, or an address of a pool. It can be fixed without a change of the Machine.
type SecretError struct {
	Message string
	// Refused says that the Secret is there, and that Machines may not use it; Final, that no label would help.
	Refused, Final bool
}

// Error implements error.
func (e *SecretError) Error() string { return e.Message }

// ofSecret makes err a SecretError.
func ofSecret(err error) error { return &SecretError{Message: err.Error()} }

// isRefused reports whether err says that a Secret may not be used.
func isRefused(err error) bool {
	secret, ok := errors.AsType[*SecretError](err)
	return ok && secret.Refused
}

// UnsupportedError says why a Machine does not get a module that it may get.
type UnsupportedError struct{ Message string }

// Error implements error.
func (e *UnsupportedError) Error() string { return e.Message }

// unsupported returns why a Machine does not get a module that it cannot be rendered with.
func unsupported(err error) error {
	if IsInvalid(err) {
		return &UnsupportedError{Message: fmt.Sprintf("the module's new content does not take this providerSpec: %s", err)}
	}
	return err
}
