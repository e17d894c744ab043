package reporting

import (
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	clientevents "k8s.io/client-go/tools/events"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/events"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// eventReasons are the event reasons of the Machine API's actuators.
var eventReasons = map[runs.Operation]string{runs.Create: "Create", runs.Update: "Update", runs.Destroy: "Delete",
	runs.Drift: "Update"}

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

// DriftFound reports that the instance differs from what was applied.
func DriftFound(machine *machinev1beta1.Machine, found record.DriftCheck) events.Event {
	return events.Warning(machine, "Drift"+string(found.Result), "CheckDrift", found.Summary)
}

// providersChanged reports that a run uses other provider binaries than the last applied one.
func providersChanged(machine *machinev1beta1.Machine, applied, used string) events.Event {
	return events.Normal(machine, ProvidersChanged, "Run",
		"The providers differ from those of the last applied run: was "+applied+", is "+used)
}

// DriftRepaired reports that drift was repaired.
func DriftRepaired(machine *machinev1beta1.Machine) events.Event {
	return events.Normal(machine, "DriftRepaired", "RepairDrift", "Repaired drift in place")
}

// Adopted reports that an existing instance was imported into the state, and whether it was changed
// in place.
func Adopted(machine *machinev1beta1.Machine, changed bool) events.Event {
	how := "unchanged"
	if changed {
		how = "and changed it in place"
	}
	return events.Normal(machine, "Adopted", "Adopt", "Adopted the instance: imported it into the state "+how)
}

// Released reports that the state of an instance was discarded.
func Released(machine *machinev1beta1.Machine) events.Event {
	return events.Normal(machine, "Released", "Release",
		"Released the instance: discarded its state and left it unchanged")
}

// LeftBehind reports what remains after a Machine's instance was destroyed.
func LeftBehind(machine *machinev1beta1.Machine, named []string) events.Event {
	return events.Normal(machine, "OutlivesMachine", "Delete",
		"Deleted the instance; kept as the providerSpec requests: "+strings.Join(named, "; "))
}

// ModuleMissing reports that a run uses another module than the one that created the instance.
func ModuleMissing(machine *machinev1beta1.Machine, note string) events.Event {
	return events.Warning(machine, "ModuleLost", "ChooseModule", note)
}

// EpochRefuted reports a state that claimed the epoch of a leader that never existed.
func EpochRefuted(machine *machinev1beta1.Machine, epoch string) events.Event {
	return events.Warning(machine, "StateForged", "TakeOver", "Took over the Machine's state: it claimed "+epoch+
		", which the Lease does not know; find out who else can write Secrets")
}

// StateLost reports that someone deleted the state, and that a lookup found the instance again.
func StateLost(machine *machinev1beta1.Machine) events.Event {
	return events.Warning(machine, "StateLost", "LookUp", "The Secret "+state.KeyFor(machine.Namespace, machine.UID).Name+
		" with the Machine's state was deleted; looked up the instance and imported it into a new state; find out who "+
		"deleted the Secret")
}

// InvalidAnnotation reports an annotation that cannot be read, and what is done or to be done about
// it.
func InvalidAnnotation(machine *machinev1beta1.Machine, key string, cause error, fix string) events.Event {
	return events.Warning(machine, "InvalidAnnotation", "Check",
		"Annotation "+key+" cannot be read: "+cause.Error()+"; "+fix)
}

// DoubtfulField reports a providerSpec field that may be a mistake.
func DoubtfulField(machine *machinev1beta1.Machine, note string) events.Event {
	return events.Warning(machine, "DoubtfulField", "Render", note)
}

// IgnoredField reports that a field of the providerSpec has no effect.
func IgnoredField(machine *machinev1beta1.Machine, note string) events.Event {
	return events.Warning(machine, "IgnoredField", "Render", note)
}

// Failure sends the event of a failed operation and counts it. Waiting is not a failure.
func Failure(recorder clientevents.EventRecorder, metrics *Metrics, operation runs.Operation,
	machine *machinev1beta1.Machine, cause error) {
	_, waiting := actuators.AsRequeueAfter(cause)
	_, uncertain := actuators.AsUncertain(cause)
	if waiting || uncertain {
		return
	}
	failedTo(operation, machine, Typed(operation, cause)).Send(recorder)
	metrics.failed(operation, machine, reasonOf(operation, cause))
}
