package reporting

import (
	"errors"
	"fmt"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/internal/desired"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/leadership"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// ProgressInterval is how soon a Machine is reconciled again whose run is in progress. The run's end wakes it earlier.
const ProgressInterval = time.Minute

// waitingRate is how many Machines a second are reconciled whose runs wait, at most.
const waitingRate = 10

// ProgressAfter returns how soon a Machine is reconciled again whose run is in progress, with so many that wait. Where many do, that takes longer: all of them together
// must not keep those waiting for which something has happened.
func ProgressAfter(waiting int) time.Duration {
	return max(ProgressInterval, time.Duration(waiting)*time.Second/waitingRate)
}

// secretRetry is how soon a Secret is looked for again that is missing.
const secretRetry = 15 * time.Second

// fixes say what to do about a class of engine errors. A class without an entry speaks for itself.
var fixes = map[failure.Class]string{
	failure.Quota:       "it is tried again; free or raise the quota, or choose another size or zone",
	failure.Credentials: "check the credentials Secret that the providerSpec names",
	failure.Throttled:   "it is tried again later",
	failure.Transient:   "it is tried again",
	failure.Interrupted: "it goes on after the restart, or at the next try",
	failure.Killed:      "what it did is looked up before the next try",
}

// withheldElsewhere says where a text is that is withheld.
const withheldElsewhere = "'kubectl machine logs --withheld' prints it, for those who may read the Secret with the Machine's state"

// Typed makes a run's error one of the Machine API's.
func Typed(operation runs.Operation, err error) *actuators.MachineError {
	typed := typed(operation, err)
	if _, failed := errors.AsType[*failure.Error](err); failed && typed.Class == "" {
		typed.Class = string(failure.ClassOf(err))
	}
	return typed
}

func typed(operation runs.Operation, err error) *actuators.MachineError {
	if known, ok := errors.AsType[*actuators.MachineError](err); ok {
		return known
	}
	if failed := OfDesired(operation, err); failed != nil {
		return failed
	}
	message := err.Error()
	class := failure.ClassOf(err)
	failed, ok := errors.AsType[*failure.Error](err)
	if fix := fixes[class]; ok && failed.Hint != "" {
		message += "; " + failed.Hint
	} else if fix != "" {
		message += "; " + fix
	}
	if ok && failed.Withheld() {
		message += "; " + withheldElsewhere
	}
	switch {
	case class == failure.InvalidConfiguration && operation != runs.Destroy:
		return actuators.InvalidConfiguration("%s", message)
	case class == failure.Quota, class == failure.Throttled:
		return actuators.InsufficientResources("%s", message)
	}
	if locked, ok := errors.AsType[*state.LockedError](err); ok {
		message = fmt.Sprintf("the Machine's state is locked by a process that is not proven dead (%s); it is tried again, and the lock is never broken without proof", locked.Lock)
	}
	return operationFailed(operation, message)
}

// operationFailed returns the Machine API's error for an operation that failed.
func operationFailed(operation runs.Operation, message string) *actuators.MachineError {
	switch operation {
	case runs.Create:
		return actuators.CreateFailed("%s", message)
	case runs.Destroy:
		return actuators.DeleteFailed("%s", message)
	default:
		return actuators.UpdateFailed("%s", message)
	}
}

// OfDesired makes an error of package desired one of the Machine API's; nil for any other.
func OfDesired(operation runs.Operation, err error) *actuators.MachineError {
	if invalid, ok := errors.AsType[*desired.InvalidError](err); ok {
		return actuators.InvalidConfiguration("%s", invalid.Message)
	}
	if secret, ok := errors.AsType[*desired.SecretError](err); ok {
		return operationFailed(operation, secret.Message).In(secretRetry)
	}
	if unsupported, ok := errors.AsType[*desired.UnsupportedError](err); ok {
		return actuators.UnsupportedChange("%s", unsupported.Message)
	}
	return nil
}

// AsMachineError makes an error that the machine controller understands of one of a run. Waiting, and that nothing can be said, are none of the
// Machine API's errors; nor is it that another manager leads.
func AsMachineError(operation runs.Operation, err error) error {
	if waiting, ok := actuators.AsRequeueAfter(err); ok {
		return waiting
	}
	if uncertain, ok := actuators.AsUncertain(err); ok {
		return uncertain
	}
	if errors.Is(err, leadership.ErrNotLeader) {
		return err
	}
	return Typed(operation, err)
}

// OtherPlace says that an instance is in another place than the one that a run would be in.
func OtherPlace(operation runs.Operation, f *lifecycle.Facts, differs string) *actuators.MachineError {
	message, fix := "the instance was made in another place than the providerSpec and the credentials name now", "put them back, or make a new Machine"
	if operation == runs.Destroy {
		message, fix = "the instance is not destroyed, since the credentials lead to another place than it was made in", "put them back"
	}
	if f.Unrecorded() {
		message = "an instance may have been made in another place than the providerSpec and the credentials name now"
		fix = fmt.Sprintf("put them back, so that it is looked for there; or look yourself and, when nothing is there, set the annotation %s: %s on the Machine",
			record.NoInstanceAnnotation, f.AbandonedRun())
	}
	text := fmt.Sprintf("%s: %s; %s", message, differs, fix)
	switch operation {
	case runs.Create:
		return actuators.CreateFailed("%s", text).In(ProgressInterval)
	case runs.Destroy:
		return actuators.DeleteFailed("%s", text).In(ProgressInterval)
	default:
		return actuators.UnsupportedChange("%s", text).In(ProgressInterval)
	}
}

// Undeletable says why something that is there, or may be, cannot be removed with the Machine as it is. Only where Exists reports
// the instance is it an InvalidConfiguration: callers let a Machine go then, provided that Exists returns false.
func Undeletable(f *lifecycle.Facts, err error) error {
	if !actuators.IsInvalidConfiguration(err) {
		return err
	}
	if f.Exists() {
		return actuators.InvalidConfiguration("the instance cannot be removed with this providerSpec; fix it, or write it as it was: %s", err)
	}
	return actuators.DeleteFailed("what is left of the instance, or may be, cannot be removed with this providerSpec; fix it, or write it as it was: %s", err).In(ProgressInterval)
}

// IsRefused reports whether an outcome is a change that was not let through.
func IsRefused(outcome error) bool {
	failed, ok := errors.AsType[*actuators.MachineError](outcome)
	return ok && failed.Reason == machinev1beta1.UnsupportedChangeMachineError
}
