package webhooks

import (
	"context"
	"errors"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// templatePath is where a MachineSet keeps what its Machines are made from.
const templatePath = "spec.template"

// machineSetDefaulter looks at a MachineSet that is created. It sets nothing: its Machines are completed when they are created.
type machineSetDefaulter struct{}

// Default implements admission.Defaulter.
func (*machineSetDefaulter) Default(_ context.Context, set *machinev1beta1.MachineSet) error {
	if missing := requireValue(set.Spec.Template.Spec.ProviderSpec.Value); missing != nil && !deleting(set) {
		return apierrors.NewInvalid(machineSetKind, set.Name, field.ErrorList{missing})
	}
	return nil
}

// machineSetValidator answers for MachineSets.
type machineSetValidator struct {
	rules  rules
	reader client.Reader
}

// ValidateCreate implements admission.Validator.
func (v *machineSetValidator) ValidateCreate(ctx context.Context, set *machinev1beta1.MachineSet) (admission.Warnings, error) {
	return v.answer(ctx, set, v.rules.newMachineSet(set))
}

// ValidateUpdate implements admission.Validator.
func (v *machineSetValidator) ValidateUpdate(ctx context.Context, before, set *machinev1beta1.MachineSet) (admission.Warnings, error) {
	return v.answer(ctx, set, v.rules.changedMachineSet(before, set))
}

// ValidateDelete implements admission.Validator. Anything may be deleted.
func (v *machineSetValidator) ValidateDelete(context.Context, *machinev1beta1.MachineSet) (admission.Warnings, error) {
	return nil, nil
}

func (v *machineSetValidator) answer(ctx context.Context, set *machinev1beta1.MachineSet, found judgement) (admission.Warnings, error) {
	found.warnings = append(found.warnings, missingSecrets(ctx, v.reader, set.Namespace, found.secrets)...)
	return found.answer(machineSetKind, set.Name)
}

// newMachineSet judges a MachineSet that is created.
func (r rules) newMachineSet(set *machinev1beta1.MachineSet) judgement {
	found := judgement{errs: judgeSet(&set.Spec)}
	machine := machineOf(set)
	found.add(r.providerSpec(machine, templatePath))
	if missing := r.unlabelled(machine, templatePath); missing != nil {
		found.warn(missing)
	}
	return found
}

// changedMachineSet judges an update of a MachineSet.
func (r rules) changedMachineSet(before, set *machinev1beta1.MachineSet) judgement {
	if deleting(set) && equality.Semantic.DeepEqual(before.Spec, set.Spec) {
		return judgement{}
	}
	found := judgement{errs: judgeSet(&set.Spec)}
	found.tolerate(judgeSet(&before.Spec))
	// One that selects nothing useful has no Machines to lose.
	_, unusable := selectorOf(&before.Spec)
	if unusable == nil && !equality.Semantic.DeepEqual(before.Spec.Selector, set.Spec.Selector) {
		found.refuse(field.Forbidden(field.NewPath("spec", "selector"), "selector is immutable"))
	}
	found.add(r.changedProviderSpec(machineOf(before), machineOf(set), templatePath, deleting(set)))
	return found
}

// machineOf answers a Machine as the MachineSet would make it.
func machineOf(set *machinev1beta1.MachineSet) *machinev1beta1.Machine {
	return &machinev1beta1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: set.Name + "-", Namespace: set.Namespace,
			Labels: set.Spec.Template.Labels, Annotations: set.Spec.Template.Annotations,
		},
		Spec: set.Spec.Template.Spec,
	}
}

// judgeSet answers what keeps a MachineSet from finding its Machines, whatever they are.
func judgeSet(spec *machinev1beta1.MachineSetSpec) field.ErrorList {
	path := field.NewPath("spec")
	var errs field.ErrorList
	if ptr.Deref(spec.Replicas, 0) < 0 {
		errs = append(errs, field.Invalid(path.Child("replicas"), *spec.Replicas, "set it to zero or more"))
	}
	selector, err := selectorOf(spec)
	switch {
	case err != nil:
		errs = append(errs, field.Invalid(path.Child("selector"), spec.Selector, err.Error()))
	case !selector.Matches(labels.Set(spec.Template.Labels)):
		errs = append(errs, field.Invalid(path.Child("template", "metadata", "labels"), spec.Template.Labels,
			"`selector` does not match template `labels`"))
	}
	return errs
}

// selectorOf answers the selector of a MachineSet that has one of use.
func selectorOf(spec *machinev1beta1.MachineSetSpec) (labels.Selector, error) {
	selector, err := metav1.LabelSelectorAsSelector(&spec.Selector)
	if err != nil {
		return nil, err
	}
	if selector.Empty() {
		return nil, errors.New("it is empty and would select every Machine; name at least one label")
	}
	return selector, nil
}
