package capacity

import (
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/internal/cluster/events"
)

// unknownType says that nobody knows how large the instance type is.
func unknownType(set *machinev1beta1.MachineSet, err error) events.Event {
	return events.Warning(set, "FailedUpdate", "Estimate", inTemplate(err)+
		"; until then the annotations that an autoscaler reads are not changed, and can be set by hand")
}

// badProviderSpec says that the template's providerSpec cannot be read.
func badProviderSpec(set *machinev1beta1.MachineSet, err error) events.Event {
	return events.Warning(set, "ReconcileError", "Estimate", inTemplate(err))
}

// inTemplate moves the paths in an error, which is about a Machine, to where the MachineSet has them.
func inTemplate(err error) string {
	return strings.ReplaceAll(err.Error(), "spec.providerSpec", "spec.template.spec.providerSpec")
}
