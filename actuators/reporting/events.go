package reporting

import (
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	clientevents "k8s.io/client-go/tools/events"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/events"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// eventReasons are those of the Machine API's actuators.
var eventReasons = map[runs.Operation]string{runs.Create: "Create", runs.Update: "Update", runs.Destroy: "Delete", runs.Drift: "Update"}

// Succeeded reports that an operation has changed the instance.
func Succeeded(operation runs.Operation, machine *machinev1beta1.Machine, note string) events.Event {
	reason := eventReasons[operation]
	return events.Normal(machine, reason, reason, note)
}

// failedTo reports that an operation failed.
func failedTo(operation runs.Operation, machine *machinev1beta1.Machine, err error) events.Event {
	reason := eventReasons[operation]
	return events.Warning(machine, "Failed"+reason, reason, err.Error())
}

// DriftFound reports that the instance is not as it was applied.
func DriftFound(machine *machinev1beta1.Machine, found record.DriftCheck) events.Event {
	return events.Warning(machine, "Drift"+string(found.Result), "CheckDrift", found.Summary)
}

// DriftRepaired reports that the instance was brought back to what it was applied as.
func DriftRepaired(machine *machinev1beta1.Machine) events.Event {
	return events.Normal(machine, "DriftRepaired", "RepairDrift", "Brought the instance back in place")
}

// Adopted reports that an instance that something else has made was brought into the state, and whether it was changed in place.
func Adopted(machine *machinev1beta1.Machine, changed bool) events.Event {
	how := "as it is"
	if changed {
		how = "and changed in place"
	}
	return events.Normal(machine, "Adopted", "Adopt", "Adopted the instance: it was brought into the state "+how)
}

// Released reports that the state of an instance was forgotten.
func Released(machine *machinev1beta1.Machine) events.Event {
	return events.Normal(machine, "Released", "Release", "Forgot the state of the instance, which stays as it is")
}

// Outlives says what stays when a Machine is deleted.
func Outlives(named []string) string {
	return "what stays when the Machine is deleted, as its providerSpec asks for: " + strings.Join(named, "; ")
}

// LeftBehind reports what stays after a Machine's instance was destroyed.
func LeftBehind(machine *machinev1beta1.Machine, named []string) events.Event {
	return events.Normal(machine, "OutlivesMachine", "Delete", "Deleted the instance; this stays, as the providerSpec asks for: "+strings.Join(named, "; "))
}

// ModuleMissing reports that a run is made with another module than the instance.
func ModuleMissing(machine *machinev1beta1.Machine, note string) events.Event {
	return events.Warning(machine, "ModuleLost", "ChooseModule", note)
}

// DoubtfulField reports something in the providerSpec that may not be what was meant.
func DoubtfulField(machine *machinev1beta1.Machine, note string) events.Event {
	return events.Warning(machine, "DoubtfulField", "Render", note)
}

// IgnoredField reports that a field of the providerSpec has no effect.
func IgnoredField(machine *machinev1beta1.Machine, note string) events.Event {
	return events.Warning(machine, "IgnoredField", "Render", note)
}

// Failure sends the event of an operation that failed, and counts it. Waiting is no failure.
func Failure(recorder clientevents.EventRecorder, metrics *Metrics, operation runs.Operation, machine *machinev1beta1.Machine, cause error) {
	_, waiting := actuators.AsRequeueAfter(cause)
	_, uncertain := actuators.AsUncertain(cause)
	if waiting || uncertain {
		return
	}
	failedTo(operation, machine, Typed(operation, cause)).Send(recorder)
	metrics.failed(operation, machine, reasonOf(operation, cause))
}
