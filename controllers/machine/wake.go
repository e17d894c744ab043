package machine

import (
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
)

// ownConditions are the conditions that this controller writes and never decides from. Drained
// belongs to the drain controller.
var ownConditions = []machinev1beta1.ConditionType{
	machinev1beta1.InstanceExistsCondition, InstanceUpToDate, machinev1beta1.MachineDrainable,
	machinev1beta1.MachineTerminable,
	machineapi.Paused, VolumesDetached, NodeLinked,
}

// machineChanged filters out updates that change only this controller's own conditions. They would
// retry an error in a condition at once, and forever if its text changes each time.
func machineChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(update event.UpdateEvent) bool {
		before, beforeOK := update.ObjectOld.(*machinev1beta1.Machine)
		after, afterOK := update.ObjectNew.(*machinev1beta1.Machine)
		if !beforeOK || !afterOK || before.ResourceVersion == after.ResourceVersion { // equal versions are a resync
			return true
		}
		return !equality.Semantic.DeepEqual(withoutOwnConditions(before), withoutOwnConditions(after))
	}}
}

func withoutOwnConditions(machine *machinev1beta1.Machine) *machinev1beta1.Machine {
	bare := machine.DeepCopy()
	bare.ResourceVersion, bare.ManagedFields, bare.Status.LastUpdated = "", nil, nil
	bare.Status.Conditions = slices.DeleteFunc(bare.Status.Conditions, func(c machinev1beta1.Condition) bool {
		return slices.Contains(ownConditions, c.Type)
	})
	return bare
}
