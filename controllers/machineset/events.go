package machineset

import (
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/internal/cluster/events"
)

// reconcileError reports that a reconcile of the MachineSet failed.
func reconcileError(set *machinev1beta1.MachineSet, err error) events.Event {
	return events.Warning(set, "ReconcileError", "Reconcile", err.Error())
}
