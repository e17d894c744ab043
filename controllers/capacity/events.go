package capacity

import (
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/internal/cluster/events"
)

// unknownInstanceType reports that the capacity of the instance type is not known.
func unknownInstanceType(set *machinev1beta1.MachineSet, err error) events.Event {
	return events.Warning(set, "FailedUpdate", "Estimate", inTemplate(err)+
		"; until then the annotations that an autoscaler reads are not changed, and can be set by hand")
}

// invalidProviderSpec reports that the template's providerSpec is invalid.
func invalidProviderSpec(set *machinev1beta1.MachineSet, err error) events.Event {
	return events.Warning(set, "ReconcileError", "Estimate", inTemplate(err))
}

// inTemplate changes the field paths in an error from those of a Machine to those of a MachineSet.
func inTemplate(err error) string {
	return strings.ReplaceAll(err.Error(), "spec.providerSpec", "spec.template.spec.providerSpec")
}
