package machinedeployment

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
)

// roleLabels have the role of a Machine.
var roleLabels = []string{"machine.openshift.io/cluster-api-machine-role", "machine.openshift.io/cluster-api-machine-type"}

// controlPlaneRoles are the roles whose Machines a MachineDeployment never touches.
var controlPlaneRoles = []string{"master", "control-plane"}

// bounds are the numbers of a spec, with defaults.
type bounds struct {
	replicas, surge, unavailable int
}

// validateSpec ends the reconcile of a spec that cannot be followed. A change triggers another.
type validateSpec struct{}

// Reconcile implements pipeline.Step.
func (*validateSpec) Reconcile(_ context.Context, s *scope) (bool, error) {
	s.selector, s.bounds, s.invalid = validate(&s.deployment.Spec)
	return s.invalid == nil, nil
}

func validate(spec *v1beta1.MachineDeploymentSpec) (labels.Selector, bounds, error) {
	selector, err := metav1.LabelSelectorAsSelector(&spec.Selector)
	switch {
	case err != nil:
		return nil, bounds{}, fmt.Errorf("spec.selector cannot be read: %w; fix the selector", err)
	case selector.Empty():
		return nil, bounds{}, errors.New("spec.selector is empty and would select every Machine; name at least one label")
	case !selector.Matches(labels.Set(spec.Template.Labels)):
		return nil, bounds{}, fmt.Errorf("spec.selector %q does not match spec.template.metadata.labels %q; add the "+
			"selected labels to the template", selector, labels.Set(spec.Template.Labels))
	case spec.Template.Spec.ProviderSpec.Value == nil:
		return nil, bounds{}, errors.New("spec.template.spec.providerSpec.value is missing; set it to describe the " +
			"instance of each Machine")
	case controlPlane(spec.Template.Labels):
		return nil, bounds{}, errors.New("the labels of the template name the control plane, whose Machines a " +
			"MachineDeployment does not change; use a ControlPlaneMachineSet")
	}
	numbers := bounds{replicas: int(ptr.Deref(spec.Replicas, 1))}
	numbers.surge, numbers.unavailable, err = spec.Strategy.Bounds(numbers.replicas)
	return selector, numbers, err
}

// controlPlane reports whether a Machine's labels say that it is of the control plane.
func controlPlane(labels map[string]string) bool {
	return slices.ContainsFunc(roleLabels, func(name string) bool {
		return slices.Contains(controlPlaneRoles, labels[name])
	})
}

func (s *scope) strategy() v1beta1.MachineDeploymentStrategyType {
	return s.deployment.Spec.Strategy.TypeOrDefault()
}
