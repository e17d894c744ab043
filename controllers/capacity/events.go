package capacity

import (
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/internal/cluster/events"
)

// unknownInstanceType reports an instance type of unknown capacity.
func unknownInstanceType(set *machinev1beta1.MachineSet, err error) events.Event {
	return events.Warning(set, "FailedUpdate", "Estimate", inTemplate(err)+
		"; until then the autoscaler's annotations are left unchanged; you can set them by hand")
}

// invalidProviderSpec reports that the template's providerSpec is invalid.
func invalidProviderSpec(set *machinev1beta1.MachineSet, err error) events.Event {
	return events.Warning(set, "ReconcileError", "Estimate", inTemplate(err))
}

// inTemplate changes the field paths in an error from those of a Machine to those of a MachineSet.
func inTemplate(err error) string {
	return strings.ReplaceAll(err.Error(), "spec.providerSpec", "spec.template.spec.providerSpec")
}
