package iac

import (
	"errors"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/events"
	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/leadership"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// mends tell what to do about a class of engine errors. A class without an entry speaks for itself.
var mends = map[engine.Class]string{
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
	message := err.Error()
	class := engine.ClassOf(err)
	if mend, ok := mends[class]; ok {
		message += "; " + mend
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
	switch operation {
	case runs.Create:
		return actuators.CreateFailed("%s", message)
	case runs.Destroy:
		return actuators.DeleteFailed("%s", message)
	default:
		return actuators.UpdateFailed("%s", message)
	}
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
func elsewhere(operation runs.Operation, differs string) *actuators.MachineError {
	const fix = "the instance was made in another place than the providerSpec and the credentials name now: %s; put them back, or make a new Machine"
	switch operation {
	case runs.Create:
		return actuators.CreateFailed(fix, differs).In(inProgress)
	case runs.Destroy:
		return actuators.DeleteFailed("the instance is not destroyed, since the credentials lead to another place than it was made in: %s; put them back",
			differs).In(inProgress)
	default:
		return actuators.UnsupportedChange(fix, differs).In(inProgress)
	}
}

// undeletable says why something that is there, or may be, cannot be removed with the Machine as it is. Only where Exists vouches
// for the instance is it an InvalidConfiguration: callers let a Machine go on one, provided that Exists answers false.
func undeletable(f *lifecycle.Facts, err error) error {
	if !actuators.IsInvalidConfiguration(err) {
		return err
	}
	if f.Exists() {
		return actuators.InvalidConfiguration("the instance cannot be removed with this providerSpec; mend it, or write it as it was: %s", err)
	}
	return actuators.DeleteFailed("what is left of the instance, or may be, cannot be removed with this providerSpec; mend it, or write it as it was: %s", err).In(inProgress)
}

// eventReasons are those of the Machine API's actuators.
var eventReasons = map[runs.Operation]string{runs.Create: "Create", runs.Update: "Update", runs.Destroy: "Delete", runs.Drift: "Update"}

// succeeded tells that an operation has changed the instance.
func succeeded(operation runs.Operation, machine *machinev1beta1.Machine, note string) events.Event {
	reason := eventReasons[operation]
	return events.Normal(machine, reason, reason, note)
}

// failedTo tells that an operation failed.
func failedTo(operation runs.Operation, machine *machinev1beta1.Machine, err error) events.Event {
	reason := eventReasons[operation]
	return events.Warning(machine, "Failed"+reason, reason, err.Error())
}

// driftFound tells that the instance is not as it was applied.
func driftFound(machine *machinev1beta1.Machine, found lifecycle.DriftCheck) events.Event {
	return events.Warning(machine, "Drift"+string(found.Result), "CheckDrift", found.Summary)
}

// driftRepaired tells that the instance was brought back to what it was applied as.
func driftRepaired(machine *machinev1beta1.Machine) events.Event {
	return events.Normal(machine, "DriftRepaired", "RepairDrift", "Brought the instance back in place")
}

// moduleLost tells that a run is made with another module than the instance.
func moduleLost(machine *machinev1beta1.Machine, note string) events.Event {
	return events.Warning(machine, "ModuleLost", "ChooseModule", note)
}

// doubtful tells of something in the providerSpec that may not be what was meant.
func doubtful(machine *machinev1beta1.Machine, note string) events.Event {
	return events.Warning(machine, "DoubtfulField", "Render", note)
}

// ignoredField tells that a field of the providerSpec has no effect.
func ignoredField(machine *machinev1beta1.Machine, note string) events.Event {
	return events.Warning(machine, "IgnoredField", "Render", note)
}
