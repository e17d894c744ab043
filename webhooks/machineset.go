package webhooks

import (
	"context"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/machine-iac/machine-iac-operator/internal/render"
)

// templatePath is the path of a MachineSet's template.
const templatePath = "spec.template"

// machineSetDefaulter completes the providerSpec of a new MachineSet. Its Machines get all other
// defaults when they are created.
type machineSetDefaulter struct {
	rules rules
}

// Default implements admission.Defaulter.
func (d *machineSetDefaulter) Default(_ context.Context, set *machinev1beta1.MachineSet) error {
	if missing := requireValue(set.Spec.Template.Spec.ProviderSpec.Value); missing != nil && !deleting(set) {
		return missing
	}
	set.Spec.Template.Spec.ProviderSpec.Value = d.rules.completed(render.MachineOf(set))
	return nil
}

// machineSetValidator validates MachineSets.
type machineSetValidator struct {
	rules   rules
	secrets secretChecks
}

// ValidateCreate implements admission.Validator.
func (v *machineSetValidator) ValidateCreate(ctx context.Context,
	set *machinev1beta1.MachineSet) (admission.Warnings, error) {
	rules, err := v.rules.now(ctx)
	if err != nil {
		return nil, err
	}
	return v.response(ctx, set, rules.newMachineSet(set))
}

// ValidateUpdate implements admission.Validator.
func (v *machineSetValidator) ValidateUpdate(ctx context.Context, before,
	set *machinev1beta1.MachineSet) (admission.Warnings, error) {
	rules, err := v.rules.now(ctx)
	if err != nil {
		return nil, err
	}
	return v.response(ctx, set, rules.changedMachineSet(before, set))
}

// ValidateDelete implements admission.Validator. Deletions are always allowed.
func (v *machineSetValidator) ValidateDelete(context.Context, *machinev1beta1.MachineSet) (admission.Warnings, error) {
	return nil, nil
}

func (v *machineSetValidator) response(ctx context.Context, set *machinev1beta1.MachineSet,
	found admissionResult) (admission.Warnings, error) {
	v.secrets.check(ctx, set.Namespace, &found)
	return found.response()
}

// newMachineSet checks a new MachineSet.
func (r rules) newMachineSet(set *machinev1beta1.MachineSet) admissionResult {
	found := admissionResult{errs: render.CheckSet(&set.Spec)}
	machine := render.MachineOf(set)
	found.add(r.providerSpec(machine, templatePath))
	if missing := r.unlabelled(machine, templatePath); missing != nil {
		found.warn(missing)
	}
	return found
}

// changedMachineSet checks an update of a MachineSet.
func (r rules) changedMachineSet(before, set *machinev1beta1.MachineSet) admissionResult {
	if deleting(set) && equality.Semantic.DeepEqual(before.Spec, set.Spec) {
		return admissionResult{}
	}
	found := admissionResult{errs: render.CheckSet(&set.Spec)}
	found.tolerate(render.CheckSet(&before.Spec))
	// A MachineSet with an unusable selector has no Machines to lose.
	_, unusable := render.SetSelector(&before.Spec)
	if unusable == nil && !equality.Semantic.DeepEqual(before.Spec.Selector, set.Spec.Selector) {
		found.refuse(field.Forbidden(field.NewPath("spec", "selector"), "selector is immutable"))
	}
	found.add(r.changedProviderSpec(render.MachineOf(before), render.MachineOf(set), templatePath, deleting(set)))
	return found
}
