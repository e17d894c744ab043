package reporting

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/internal/desired"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/leadership"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// ProgressInterval is the requeue delay of a Machine whose run is in progress. The end of the run
// wakes it earlier.
const ProgressInterval = time.Minute

// waitingRate bounds the reconciles per second of Machines whose runs wait.
const waitingRate = 10

// ProgressAfter returns the requeue delay of a Machine whose run is in progress, given the number
// of waiting runs. It grows with that number, so that polling does not delay Machines that have
// news.
func ProgressAfter(waiting int) time.Duration {
	return max(ProgressInterval, time.Duration(waiting)*time.Second/waitingRate)
}

// secretRetry is the delay before a missing Secret is read again.
const secretRetry = 15 * time.Second

// fixes are the remedies by class of engine error. A class without an entry needs none.
var fixes = map[failure.Class]string{
	failure.Quota:       "retrying; free or raise the quota, or choose another size or zone",
	failure.Credentials: "check the credentials Secret that the providerSpec names",
	failure.Throttled:   "retrying later",
	failure.Transient:   "retrying",
	failure.Interrupted: "the run resumes after the restart or with the next attempt",
	failure.ProviderNotInstalled: "add the provider, as docs/modules.md#get-the-provider shows; the run is then " +
		"retried",
	failure.Killed: "its effects are looked up before the next attempt",
}

// grantRight is the remedy for credentials that the infrastructure knows and does not let do this.
const grantRight = "the credentials lack the permission that the message names; grant it"

// freeDisk is the remedy for a full work folder.
const freeDisk = "retrying; free space below the manager's --work-dir, or enlarge its volume (with --runs-in=jobs, " +
	"raise --run-memory)"

// fixOf returns the remedy for an engine's error, or "".
func fixOf(err error) string {
	if failure.WorkFolderFull(err) {
		return freeDisk
	}
	class := failure.ClassOf(err)
	if class == failure.Credentials && failure.Denied(err) {
		return grantRight
	}
	return fixes[class]
}

// LookupFailed says that a run failed to look up what an abandoned run may have created, and what a
// person can do if that cannot succeed.
func LookupFailed(machine *machinev1beta1.Machine, abandoned string, err error) error {
	wayOut := fmt.Sprintf("or make sure that the instance does not exist and run "+
		"'kubectl annotate --overwrite machine %s -n %s %s=%s'",
		machine.Name, machine.Namespace, record.NoInstanceAnnotation, abandoned)
	if fix := fixOf(err); fix != "" {
		wayOut = fix + "; " + wayOut
	}
	return failure.WithHint(fmt.Errorf("looking up an instance that run %s may have created: %w", abandoned, err), wayOut)
}

// withheldElsewhere says how to read withheld text.
const withheldElsewhere = "run 'kubectl machine logs --withheld' to print it, if you may read the Machine's state " +
	"Secret"

// Typed converts a run's error to a Machine API error.
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
	if refused := refusedWrite(operation, err); refused != nil {
		return refused
	}
	message := err.Error()
	if failure.WorkFolderFull(err) {
		message = "the work folder is full: " + message
	}
	class := failure.ClassOf(err)
	failed, ok := errors.AsType[*failure.Error](err)
	if fix := cmp.Or(failure.Hint(err), fixOf(err)); fix != "" {
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
		message = fmt.Sprintf("the Machine's state is locked by a process that may still be alive (%s); retrying, since a "+
			"lock is never broken without proof", locked.Lock)
	}
	return operationFailed(operation, message)
}

// RefusedWrite reports whether the API server refused to store a record of the Machine, for as long
// as someone changes a quota, a policy or the Secret. Nothing signals that.
func RefusedWrite(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) }

// refusedWrite returns the Machine API error for a write that a quota or an immutable Secret
// refuses, or nil.
func refusedWrite(operation runs.Operation, err error) *actuators.MachineError {
	switch text := err.Error(); {
	case apierrors.IsForbidden(err) && strings.Contains(text, "exceeded quota: "):
		failed := actuators.InsufficientResources("QuotaExceeded: %s; retried twice a minute; raise the ResourceQuota "+
			"of the namespace, or delete objects that nothing needs", text).In(ProgressInterval)
		failed.Class = string(failure.Quota)
		return failed
	case apierrors.IsInvalid(err) && strings.Contains(text, "field is immutable when `immutable` is set"):
		return operationFailed(operation, text+"; the Secret was made immutable, and Kubernetes never undoes that: "+
			"put a copy without the field immutable in its place, after a backup and while no run is active")
	}
	return nil
}

// operationFailed returns the Machine API error of a failed operation.
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

// OfDesired converts an error of package desired to a Machine API error. It returns nil for any
// other.
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

// AsMachineError converts a run's error to one that the machine controller understands. It passes
// through waiting, uncertainty and lost leadership, which are not Machine API errors.
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

// OtherPlace returns the error for an instance that was made in another place than the run's.
func OtherPlace(operation runs.Operation, f *lifecycle.Facts, made module.Place,
	wanted *desired.State) *actuators.MachineError {
	message, fix := "the instance was created in another place than the providerSpec and credentials name now",
		"restore them, or create a new Machine"
	if operation == runs.Destroy {
		message, fix = "instance not destroyed: the credentials point to another place than it was created in", "restore them"
	}
	if f.Unrecorded() {
		message = "an instance may have been created in another place than the providerSpec and credentials name now"
		fix = fmt.Sprintf("restore them, so that it can be looked up; or check yourself and, if nothing is there, set the "+
			"annotation %s: %s on the Machine",
			record.NoInstanceAnnotation, f.AbandonedRun())
	}
	text := fmt.Sprintf("%s: %s; %s", message, made.Diff(wanted.Place), fix)
	if wanted.CredentialsSecret != "" {
		text += fmt.Sprintf("; or, if it is the same place under a new name, add to the annotation %s of Secret %s: %s",
			desired.FormerPlaceAnnotation, wanted.CredentialsSecret,
			strings.Join(wanted.Renamings(made), " and, in a line of its own, "))
	}
	switch operation {
	case runs.Create:
		return actuators.CreateFailed("%s", text).In(ProgressInterval)
	case runs.Destroy:
		return actuators.DeleteFailed("%s", text).In(ProgressInterval)
	default:
		return actuators.UnsupportedChange("%s", text).In(ProgressInterval)
	}
}

// Undeletable returns why something that exists, or may, cannot be deleted with this Machine. It is
// an InvalidConfiguration only if Exists reports the instance, because callers release a Machine on
// that error once Exists returns false.
func Undeletable(f *lifecycle.Facts, err error) error {
	if !actuators.IsInvalidConfiguration(err) {
		return err
	}
	if f.Exists() {
		return actuators.InvalidConfiguration("the instance cannot be deleted with this providerSpec; fix or restore it: %s",
			err)
	}
	return actuators.DeleteFailed("an instance may remain that cannot be deleted with this providerSpec; fix or "+
		"restore it: %s", err).In(ProgressInterval)
}

// IsRefused reports whether an outcome is a refused change.
func IsRefused(outcome error) bool {
	failed, ok := errors.AsType[*actuators.MachineError](outcome)
	return ok && failed.Reason == machinev1beta1.UnsupportedChangeMachineError
}
