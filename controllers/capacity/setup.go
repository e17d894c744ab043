package capacity

import (
	"bytes"
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
)

const defaultConcurrency = 2

// SetupWithManager creates a Controller and registers it and its watch with the manager. Client and
// Recorder default to the manager's.
func SetupWithManager(mgr manager.Manager, options Options) error {
	options.Complete(mgr, Name, defaultConcurrency)
	c, err := New(options)
	if err != nil {
		return err
	}
	return options.Register(mgr, Name, c, func(build *builder.Builder) {
		build.For(&machinev1beta1.MachineSet{}, builder.WithPredicates(capacityChanged()))
	})
}

// capacityChanged filters for new MachineSets, and changes of the template, own annotations or
// authority. It ignores scaling, status and resyncs, so that an event about an invalid template is
// not repeated.
func capacityChanged() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*machinev1beta1.MachineSet)
			if !ok {
				return false
			}
			after, ok := e.ObjectNew.(*machinev1beta1.MachineSet)
			if !ok {
				return false
			}
			return !bytes.Equal(providerSpecOf(before), providerSpecOf(after)) ||
				!equality.Semantic.DeepEqual(before.Spec.Template.Spec.Labels, after.Spec.Template.Spec.Labels) ||
				!equality.Semantic.DeepEqual(before.Spec.Template.Spec.Taints, after.Spec.Template.Spec.Taints) ||
				slices.ContainsFunc(ownAnnotations,
					func(key string) bool { return before.Annotations[key] != after.Annotations[key] }) ||
				machineapi.AuthorityOfMachineSet(before).IsMachineAPI() != machineapi.AuthorityOfMachineSet(after).IsMachineAPI()
		},
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

func providerSpecOf(set *machinev1beta1.MachineSet) []byte {
	if value := set.Spec.Template.Spec.ProviderSpec.Value; value != nil {
		return value.Raw
	}
	return nil
}
