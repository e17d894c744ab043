package actuators

import (
	"errors"
	"fmt"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
)

// MachineError is an error to report on the Machine. Reason is one of the Machine API's error
// reasons; Message is for the Machine's owner.
type MachineError struct {
	Reason  machinev1beta1.MachineStatusError
	Message string
	// RetryAfter is the minimum delay before a retry makes sense; zero leaves it to the caller.
	RetryAfter time.Duration
	// Class is the class of the engine's failure, or empty if no engine failed.
	Class string
}

// Error implements error.
func (e *MachineError) Error() string { return e.Message }

// InvalidConfiguration returns an error that only the user can fix. On Create it makes the Machine
// Failed.
func InvalidConfiguration(format string, args ...any) *MachineError {
	return &MachineError{Reason: machinev1beta1.InvalidConfigurationMachineError, Message: fmt.Sprintf(format, args...)}
}

// InsufficientResources returns an error about missing quota or capacity; it is retried.
func InsufficientResources(format string, args ...any) *MachineError {
	return &MachineError{Reason: machinev1beta1.InsufficientResourcesMachineError, Message: fmt.Sprintf(format, args...)}
}

// CreateFailed returns an error about a failed creation; it is retried.
func CreateFailed(format string, args ...any) *MachineError {
	return &MachineError{Reason: machinev1beta1.CreateMachineError, Message: fmt.Sprintf(format, args...)}
}

// UpdateFailed returns an error about a failed refresh or update; it is retried.
func UpdateFailed(format string, args ...any) *MachineError {
	return &MachineError{Reason: machinev1beta1.UpdateMachineError, Message: fmt.Sprintf(format, args...)}
}

// DeleteFailed returns an error about a failed deletion; it is retried.
func DeleteFailed(format string, args ...any) *MachineError {
	return &MachineError{Reason: machinev1beta1.DeleteMachineError, Message: fmt.Sprintf(format, args...)}
}

// UnsupportedChange returns an error about a providerSpec change that cannot be made in place.
func UnsupportedChange(format string, args ...any) *MachineError {
	return &MachineError{Reason: machinev1beta1.UnsupportedChangeMachineError, Message: fmt.Sprintf(format, args...)}
}

// In returns a copy of the error with RetryAfter set.
func (e *MachineError) In(after time.Duration) *MachineError {
	late := *e
	late.RetryAfter = after
	return &late
}

// IsInvalidConfiguration reports whether err is, or wraps, an InvalidConfiguration.
func IsInvalidConfiguration(err error) bool {
	var machineError *MachineError
	return errors.As(err, &machineError) && machineError.Reason == machinev1beta1.InvalidConfigurationMachineError
}

// RequeueAfterError means that the verb is not done yet: call it again after After, or upon an
// event.
type RequeueAfterError struct {
	After  time.Duration
	Reason string
}

// Error implements error.
func (e *RequeueAfterError) Error() string {
	return fmt.Sprintf("%s; requeue after %s", e.Reason, e.After)
}

// InProgress returns a RequeueAfterError.
func InProgress(after time.Duration, format string, args ...any) *RequeueAfterError {
	return &RequeueAfterError{After: after, Reason: fmt.Sprintf(format, args...)}
}

// AsRequeueAfter returns the RequeueAfterError in err's chain.
func AsRequeueAfter(err error) (*RequeueAfterError, bool) {
	var requeue *RequeueAfterError
	ok := errors.As(err, &requeue)
	return requeue, ok
}

// ReasonNotAdopted is the Reason of an UncertainError about an existing instance that was not
// adopted.
const ReasonNotAdopted = "NotAdopted"

// UncertainError means that the existence or ownership of the instance is unknown: its state is
// missing, or nothing proves that this operator owns it. The Machine keeps its phase and is
// reconciled again.
type UncertainError struct {
	// Reason is one word for conditions, such as StateLost or NotAdopted. Message is for the
	// Machine's owner.
	Reason, Message string
	After           time.Duration
}

// Error implements error.
func (e *UncertainError) Error() string { return e.Message }

// Uncertain returns an UncertainError.
func Uncertain(after time.Duration, reason, format string, args ...any) *UncertainError {
	return &UncertainError{Reason: reason, Message: fmt.Sprintf(format, args...), After: after}
}

// AsUncertain returns the UncertainError in err's chain.
func AsUncertain(err error) (*UncertainError, bool) { return errors.AsType[*UncertainError](err) }
