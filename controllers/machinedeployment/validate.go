package machinedeployment

import (
	"context"
	"errors"
	"fmt"
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
)

// roleLabel has the role of a Machine.
const roleLabel = "machine.openshift.io/cluster-api-machine-role"

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
	case controlPlane(&spec.Template):
		return nil, bounds{}, fmt.Errorf("the template has the label %s=%s, and a MachineDeployment does not change "+
			"Machines of the control plane; use a ControlPlaneMachineSet", roleLabel, spec.Template.Labels[roleLabel])
	}
	numbers, err := boundsOf(spec)
	return selector, numbers, err
}

// boundsOf returns the bounds, as the numbers that the percentages come to.
func boundsOf(spec *v1beta1.MachineDeploymentSpec) (bounds, error) {
	b := bounds{replicas: int(ptr.Deref(spec.Replicas, 1))}
	given := ptr.Deref(spec.Strategy.RollingUpdate, v1beta1.RollingUpdateBounds{})
	surge := ptr.Deref(given.MaxSurge, intstr.FromInt32(1))
	unavailable := ptr.Deref(given.MaxUnavailable, intstr.FromInt32(0))
	var err error
	if b.surge, err = intstr.GetScaledValueFromIntOrPercent(&surge, b.replicas, true); err != nil {
		return bounds{}, fmt.Errorf("spec.strategy.rollingUpdate.maxSurge is %q: %w; use a number or a percentage",
			surge.String(), err)
	}
	if b.unavailable, err = intstr.GetScaledValueFromIntOrPercent(&unavailable, b.replicas, false); err != nil {
		return bounds{}, fmt.Errorf("spec.strategy.rollingUpdate.maxUnavailable is %q: %w; use a number or a percentage",
			unavailable.String(), err)
	}
	if b.surge <= 0 && b.unavailable <= 0 {
		b.unavailable = 1
	}
	b.unavailable = min(b.unavailable, b.replicas)
	return b, nil
}

func controlPlane(template *machinev1beta1.MachineTemplateSpec) bool {
	return slices.Contains(controlPlaneRoles, template.Labels[roleLabel])
}

func (s *scope) strategy() v1beta1.MachineDeploymentStrategyType {
	if s.deployment.Spec.Strategy.Type == "" {
		return v1beta1.InPlaceOrReplace
	}
	return s.deployment.Spec.Strategy.Type
}
