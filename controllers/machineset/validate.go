package machineset

import (
	"context"
	"errors"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// validateSpec rejects a MachineSet whose selector does not match its own Machines.
type validateSpec struct{}

// Reconcile implements pipeline.Step. Its errors are not retried: a change of the MachineSet
// triggers a reconcile.
func (*validateSpec) Reconcile(_ context.Context, s *scope) (bool, error) {
	selector, err := validate(&s.set.Spec)
	if err != nil {
		return false, reconcile.TerminalError(fmt.Errorf("validating the MachineSet: %w", err))
	}
	s.selector = selector
	return true, nil
}

// validate returns the selector of a valid spec.
func validate(spec *machinev1beta1.MachineSetSpec) (labels.Selector, error) {
	if spec.Replicas == nil {
		return nil, errors.New("spec.replicas is missing; set it to the desired number of Machines")
	}
	if *spec.Replicas < 0 {
		return nil, fmt.Errorf("spec.replicas is %d; set it to zero or more", *spec.Replicas)
	}
	selector, err := metav1.LabelSelectorAsSelector(&spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("spec.selector cannot be read: %w; fix the selector", err)
	}
	if selector.Empty() {
		return nil, errors.New("spec.selector is empty and would select every Machine; name at least one label")
	}
	if !selector.Matches(labels.Set(spec.Template.Labels)) {
		return nil, fmt.Errorf("spec.selector %q does not match spec.template.metadata.labels %q; add the selected labels "+
			"to the template",
			selector, labels.Set(spec.Template.Labels))
	}
	if _, err := priorityOf(spec.DeletePolicy); err != nil {
		return nil, err
	}
	return selector, nil
}
