package machineset

import (
	"bytes"
	"maps"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
)

// replicaChanged filters for Machines that are created or deleted, and for updates that a
// MachineSet counts or decides from. A reconcile iterates over all Machines of the set, and most
// writes of a Machine change conditions, phases and addresses.
func replicaChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(update event.UpdateEvent) bool {
		before, beforeOK := update.ObjectOld.(*machinev1beta1.Machine)
		after, afterOK := update.ObjectNew.(*machinev1beta1.Machine)
		if !beforeOK || !afterOK {
			return true
		}
		return before.UID != after.UID ||
			before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
			machineapi.MarkedForDeletion(before) != machineapi.MarkedForDeletion(after) ||
			failed(before) != failed(after) ||
			!bytes.Equal(rawOf(before.Spec.ProviderSpec.Value), rawOf(after.Spec.ProviderSpec.Value)) ||
			!maps.Equal(before.Labels, after.Labels) ||
			!equality.Semantic.DeepEqual(before.OwnerReferences, after.OwnerReferences) ||
			!equality.Semantic.DeepEqual(before.Status.NodeRef, after.Status.NodeRef)
	}}
}
