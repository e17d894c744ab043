package desired

import (
	"errors"
	"fmt"
)

// InvalidError says why a Machine cannot be rendered. Only a change of the Machine helps.
type InvalidError struct{ Message string }

// Error implements error.
func (e *InvalidError) Error() string { return e.Message }

func invalid(err error) error { return &InvalidError{Message: err.Error()} }

// IsInvalid reports whether err is, or wraps, an InvalidError.
func IsInvalid(err error) bool {
	_, ok := errors.AsType[*InvalidError](err)
	return ok
}

// SecretError reports a missing or unusable dependency of a Machine: a Secret, or an address of a
// pool. It can be fixed without changing the Machine.
type SecretError struct {
	Message string
	// Refused reports that the Secret exists but Machines may not use it; Final, that no label
	// would help; Missing, that the Secret does not exist.
	Refused, Final, Missing bool
}

// Error implements error.
func (e *SecretError) Error() string { return e.Message }

func ofSecret(err error) error { return &SecretError{Message: err.Error()} }

// isRefused reports whether err says that a Secret must not be used.
func isRefused(err error) bool {
	secret, ok := errors.AsType[*SecretError](err)
	return ok && secret.Refused
}

// isMissing reports whether err says that a Secret does not exist.
func isMissing(err error) bool {
	secret, ok := errors.AsType[*SecretError](err)
	return ok && secret.Missing
}

// UnsupportedError says why a Machine does not get a module that it is allowed to get.
type UnsupportedError struct{ Message string }

// Error implements error.
func (e *UnsupportedError) Error() string { return e.Message }

// unsupported converts the error of rendering a Machine with another module.
func unsupported(err error) error {
	if IsInvalid(err) {
		return &UnsupportedError{Message: fmt.Sprintf("the module's new content rejects this providerSpec: %s", err)}
	}
	return err
}
