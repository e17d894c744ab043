package render

import (
	"errors"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	apifield "k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// MachineOf returns a Machine as the MachineSet would create it. It shares the MachineSet's data.
func MachineOf(set *machinev1beta1.MachineSet) *machinev1beta1.Machine {
	return &machinev1beta1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: set.Name + "-", Namespace: set.Namespace,
			Labels: set.Spec.Template.Labels, Annotations: set.Spec.Template.Annotations,
		},
		Spec: set.Spec.Template.Spec,
	}
}

// CheckSet returns errors in a MachineSet that prevent it from selecting its Machines.
func CheckSet(spec *machinev1beta1.MachineSetSpec) apifield.ErrorList {
	path := apifield.NewPath("spec")
	var errs apifield.ErrorList
	if ptr.Deref(spec.Replicas, 0) < 0 {
		errs = append(errs, apifield.Invalid(path.Child("replicas"), *spec.Replicas, "set it to zero or more"))
	}
	selector, err := SetSelector(spec)
	switch {
	case err != nil:
		errs = append(errs, apifield.Invalid(path.Child("selector"), spec.Selector, err.Error()))
	case !selector.Matches(labels.Set(spec.Template.Labels)):
		errs = append(errs, apifield.Invalid(path.Child("template", "metadata", "labels"), spec.Template.Labels,
			fmt.Sprintf("`selector` does not match template `labels`: the selector is %s, the labels are %s; "+
				"labels of Machines belong in %s", metav1.FormatLabelSelector(&spec.Selector),
				labels.FormatLabels(spec.Template.Labels), path.Child("template", "metadata", "labels"))))
	}
	return errs
}

// SetSelector returns the selector of a MachineSet if it is valid.
func SetSelector(spec *machinev1beta1.MachineSetSpec) (labels.Selector, error) {
	selector, err := metav1.LabelSelectorAsSelector(&spec.Selector)
	if err != nil {
		return nil, err
	}
	if selector.Empty() {
		return nil, errors.New("it is empty and would select every Machine; name at least one label")
	}
	return selector, nil
}
