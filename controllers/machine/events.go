package machine

import (
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/internal/cluster/events"
)

// failedValidate reports that the Machine is invalid.
func failedValidate(machine *machinev1beta1.Machine, err error) events.Event {
	return events.Warning(machine, "FailedValidate", "Validate", err.Error())
}
