package drain

import (
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
)

// relevantFields are the fields of a Machine that decisions are made from.
type relevantFields struct {
	UID      types.UID
	Wanted   bool
	Excluded bool
	Timeout  string
	Started  string
	Hooks    []machinev1beta1.LifecycleHook
	Node     *corev1.ObjectReference
}

func relevantFieldsOf(machine *machinev1beta1.Machine) relevantFields {
	_, excluded := machine.Annotations[machineapi.ExcludeDrainAnnotation]
	return relevantFields{
		UID:      machine.UID,
		Wanted:   shouldDrain(machine),
		Excluded: excluded,
		Timeout:  machine.Annotations[TimeoutAnnotation],
		Started:  machine.Annotations[StartedAnnotation],
		Hooks:    machine.Spec.LifecycleHooks.PreDrain,
		Node:     machine.Status.NodeRef,
	}
}

// drainChanged filters for Machines that are to be drained, when they are new, when a relevant
// field changes and on resyncs; and for Machines that no longer are, so that their drain is
// cancelled.
func drainChanged() predicate.Predicate {
	wanted := func(object client.Object) bool {
		machine, ok := object.(*machinev1beta1.Machine)
		return ok && shouldDrain(machine)
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return wanted(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, beforeOK := e.ObjectOld.(*machinev1beta1.Machine)
			after, afterOK := e.ObjectNew.(*machinev1beta1.Machine)
			if !beforeOK || !afterOK {
				return false
			}
			if before.ResourceVersion == after.ResourceVersion {
				return shouldDrain(after)
			}
			x, y := relevantFieldsOf(before), relevantFieldsOf(after)
			return (x.Wanted || y.Wanted) && !equality.Semantic.DeepEqual(x, y)
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}
