package iac

import (
	"errors"
	"fmt"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/events"
	"github.com/machine-iac/machine-iac-operator/internal/desired"
	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/leadership"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// secretRetry is how soon a Secret is looked for again that is missing.
const secretRetry = 15 * time.Second

// fixes say what to do about a class of engine errors. A class without an entry speaks for itself.
var fixes = map[engine.Class]string{
	engine.Quota:       "it is tried again; free or raise the quota, or choose another size or zone",
	engine.Credentials: "check the credentials Secret that the providerSpec names",
	engine.Throttled:   "it is tried again later",
	engine.Transient:   "it is tried again",
	engine.Interrupted: "it goes on after the restart, or at the next try",
	engine.Killed:      "what it did is looked up before the next try",
}

// typed makes a run's error one of the Machine API's.
func typed(operation runs.Operation, err error) *actuators.MachineError {
	if known, ok := errors.AsType[*actuators.MachineError](err); ok {
		return known
	}
	if failed := ofDesired(operation, err); failed != nil {
		return failed
	}
	message := err.Error()
	class := engine.ClassOf(err)
	if fix, ok := fixes[class]; ok {
		message += "; " + fix
	}
	switch {
	case class == engine.InvalidConfiguration && operation != runs.Destroy:
		return actuators.InvalidConfiguration("%s", message)
	case class == engine.Quota, class == engine.Throttled:
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

// ofDesired makes an error of package desired one of the Machine API's; nil for any other.
func ofDesired(operation runs.Operation, err error) *actuators.MachineError {
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

// asMachineError makes an error that the machine controller understands of one of a run. Waiting, and that nothing can be said, are none of the
// Machine API's errors; nor is it that another manager leads.
func asMachineError(operation runs.Operation, err error) error {
	if waiting, ok := actuators.AsRequeueAfter(err); ok {
		return waiting
	}
	if uncertain, ok := actuators.AsUncertain(err); ok {
		return uncertain
	}
	if errors.Is(err, leadership.ErrNotLeader) {
		return err
	}
	return typed(operation, err)
}

// elsewhere says that an instance is in another place than the one that a run would be in.
func elsewhere(operation runs.Operation, f *lifecycle.Facts, differs string) *actuators.MachineError {
	message, fix := "the instance was made in another place than the providerSpec and the credentials name now", "put them back, or make a new Machine"
	if operation == runs.Destroy {
		message, fix = "the instance is not destroyed, since the credentials lead to another place than it was made in", "put them back"
	}
	if f.Lost() {
		message = "an instance may have been made in another place than the providerSpec and the credentials name now"
		fix = fmt.Sprintf("put them back, so that it is looked for there; or look yourself and, when nothing is there, set the annotation %s: %s on the Machine",
			lifecycle.NoInstanceAnnotation, f.LostRun())
	}
	text := fmt.Sprintf("%s: %s; %s", message, differs, fix)
	switch operation {
	case runs.Create:
		return actuators.CreateFailed("%s", text).In(progressInterval)
	case runs.Destroy:
		return actuators.DeleteFailed("%s", text).In(progressInterval)
	default:
		return actuators.UnsupportedChange("%s", text).In(progressInterval)
	}
}

// undeletable says why something that is there, or may be, cannot be removed with the Machine as it is. Only where Exists reports
// the instance is it an InvalidConfiguration: callers let a Machine go then, provided that Exists returns false.
func undeletable(f *lifecycle.Facts, err error) error {
	if !actuators.IsInvalidConfiguration(err) {
		return err
	}
	if f.Exists() {
		return actuators.InvalidConfiguration("the instance cannot be removed with this providerSpec; fix it, or write it as it was: %s", err)
	}
	return actuators.DeleteFailed("what is left of the instance, or may be, cannot be removed with this providerSpec; fix it, or write it as it was: %s", err).In(progressInterval)
}

// eventReasons are those of the Machine API's actuators.
var eventReasons = map[runs.Operation]string{runs.Create: "Create", runs.Update: "Update", runs.Destroy: "Delete", runs.Drift: "Update"}

// succeeded reports that an operation has changed the instance.
func succeeded(operation runs.Operation, machine *machinev1beta1.Machine, note string) events.Event {
	reason := eventReasons[operation]
	return events.Normal(machine, reason, reason, note)
}

// failedTo reports that an operation failed.
func failedTo(operation runs.Operation, machine *machinev1beta1.Machine, err error) events.Event {
	reason := eventReasons[operation]
	return events.Warning(machine, "Failed"+reason, reason, err.Error())
}

// driftFound reports that the instance is not as it was applied.
func driftFound(machine *machinev1beta1.Machine, found lifecycle.DriftCheck) events.Event {
	return events.Warning(machine, "Drift"+string(found.Result), "CheckDrift", found.Summary)
}

// driftRepaired reports that the instance was brought back to what it was applied as.
func driftRepaired(machine *machinev1beta1.Machine) events.Event {
	return events.Normal(machine, "DriftRepaired", "RepairDrift", "Brought the instance back in place")
}

// adopted reports that an instance that something else has made was brought into the state.
func adopted(machine *machinev1beta1.Machine, found *lifecycle.PlannedAdoption) events.Event {
	how := "as it is"
	if found != nil && len(found.Changes) > 0 {
		how = "and changed in place"
	}
	return events.Normal(machine, "Adopted", "Adopt", "Adopted the instance: it was brought into the state "+how)
}

// released reports that the state of an instance was forgotten.
func released(machine *machinev1beta1.Machine) events.Event {
	return events.Normal(machine, "Released", "Release", "Forgot the state of the instance, which stays as it is")
}

// moduleLost reports that a run is made with another module than the instance.
func moduleLost(machine *machinev1beta1.Machine, note string) events.Event {
	return events.Warning(machine, "ModuleLost", "ChooseModule", note)
}

// doubtfulField reports something in the providerSpec that may not be what was meant.
func doubtfulField(machine *machinev1beta1.Machine, note string) events.Event {
	return events.Warning(machine, "DoubtfulField", "Render", note)
}

// ignoredField reports that a field of the providerSpec has no effect.
func ignoredField(machine *machinev1beta1.Machine, note string) events.Event {
	return events.Warning(machine, "IgnoredField", "Render", note)
}

// reportFailure sends the event of an operation that failed, and counts it. Waiting is no failure.
func (a *Actuator) reportFailure(operation runs.Operation, machine *machinev1beta1.Machine, cause error) {
	_, waiting := actuators.AsRequeueAfter(cause)
	_, uncertain := actuators.AsUncertain(cause)
	if waiting || uncertain {
		return
	}
	failedTo(operation, machine, typed(operation, cause)).Send(a.recorder)
	a.metrics.failed(operation, machine, reasonOf(operation, cause))
}
