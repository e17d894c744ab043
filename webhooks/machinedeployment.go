package webhooks

import (
	"context"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/internal/render"
)

// machineDeploymentDefaulter completes the providerSpec of a new MachineDeployment as that of a
// MachineSet.
type machineDeploymentDefaulter struct {
	rules rules
}

// Default implements admission.Defaulter.
func (d *machineDeploymentDefaulter) Default(_ context.Context, deployment *v1beta1.MachineDeployment) error {
	template := &deployment.Spec.Template
	if missing := requireValue(template.Spec.ProviderSpec.Value); missing != nil && !deleting(deployment) {
		return missing
	}
	template.Spec.ProviderSpec.Value = d.rules.completed(render.MachineOf(setOf(deployment)))
	return nil
}

// machineDeploymentValidator validates MachineDeployments as the MachineSets that they create.
type machineDeploymentValidator struct {
	sets machineSetValidator
}

// ValidateCreate implements admission.Validator.
func (v *machineDeploymentValidator) ValidateCreate(ctx context.Context,
	deployment *v1beta1.MachineDeployment) (admission.Warnings, error) {
	return v.sets.ValidateCreate(ctx, setOf(deployment))
}

// ValidateUpdate implements admission.Validator.
func (v *machineDeploymentValidator) ValidateUpdate(ctx context.Context, before,
	deployment *v1beta1.MachineDeployment) (admission.Warnings, error) {
	return v.sets.ValidateUpdate(ctx, setOf(before), setOf(deployment))
}

// ValidateDelete implements admission.Validator. Deletions are always allowed.
func (v *machineDeploymentValidator) ValidateDelete(context.Context,
	*v1beta1.MachineDeployment) (admission.Warnings, error) {
	return nil, nil
}

// setOf returns a MachineSet with the MachineDeployment's selector and template. It shares its data.
func setOf(deployment *v1beta1.MachineDeployment) *machinev1beta1.MachineSet {
	return &machinev1beta1.MachineSet{
		ObjectMeta: deployment.ObjectMeta,
		Spec: machinev1beta1.MachineSetSpec{
			Replicas: deployment.Spec.Replicas, Selector: deployment.Spec.Selector, Template: deployment.Spec.Template,
		},
	}
}
