package drain

import (
	"fmt"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/internal/cluster/events"
)

// action is what every event of this controller is about.
const action = "Drain"

// drainBlocked reports that hooks block the drain.
func drainBlocked(machine *machinev1beta1.Machine, hooks []machinev1beta1.LifecycleHook) events.Event {
	names := make([]string, 0, len(hooks))
	for _, hook := range hooks {
		names = append(names, fmt.Sprintf("%s (owner %s)", hook.Name, hook.Owner))
	}
	return events.Normal(machine, "DrainBlocked", action, "Drain blocked by preDrain hooks: "+strings.Join(names, ", "))
}

// drainSkipped reports that the Machine's Node is not drained.
func drainSkipped(machine *machinev1beta1.Machine, why string) events.Event {
	return events.Normal(machine, "DrainSkipped", action, "Node drain skipped: "+why)
}

// drainProceeds reports that the drain may start.
func drainProceeds(machine *machinev1beta1.Machine) events.Event {
	return events.Normal(machine, "DrainProceeds", action, "Node drain proceeds")
}

// drainRequeued reports what the drain waits for.
func drainRequeued(machine *machinev1beta1.Machine, message string) events.Event {
	return events.Normal(machine, "DrainRequeued", action, "Node drain requeued: "+message)
}

// nodeDrained reports that the Node is empty.
func nodeDrained(machine *machinev1beta1.Machine) events.Event {
	return events.Normal(machine, "Deleted", action, fmt.Sprintf("Node %q drained", machine.Status.NodeRef.Name))
}

// drainSucceeded reports that the drain has succeeded.
func drainSucceeded(machine *machinev1beta1.Machine) events.Event {
	return events.Normal(machine, "DrainSucceeded", action, "Node drain succeeded")
}

// drainTimedOut reports that the deletion continues although pods remain.
func drainTimedOut(machine *machinev1beta1.Machine, message string) events.Event {
	return events.Warning(machine, "DrainTimedOut", action, message)
}

// invalidDrainTimeout reports that the timeout annotation is invalid.
func invalidDrainTimeout(machine *machinev1beta1.Machine, err error) events.Event {
	return events.Warning(machine, "InvalidDrainTimeout", action, err.Error())
}
