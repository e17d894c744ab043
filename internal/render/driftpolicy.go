package render

import (
	"errors"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
)

// DriftPolicy returns the Machine's drift policy: the field driftPolicy of a generic kind, and the
// annotation [v1alpha1.DriftPolicyAnnotation] otherwise. The error is an [Errors].
func DriftPolicy(machine *machinev1beta1.Machine) (v1alpha1.DriftPolicy, error) {
	if machine == nil {
		return "", errors.New("reading the drift policy: a Machine is required")
	}
	fields, failed := decodeProviderSpec(machine)
	if failed != nil {
		return "", Errors{failed}
	}
	policy, failed := driftPolicy(machine, fields)
	if failed != nil {
		return "", Errors{failed}
	}
	return policy, nil
}

// driftPolicy returns the drift policy of a Machine with these providerSpec fields.
func driftPolicy(machine *machinev1beta1.Machine, fields map[string]any) (v1alpha1.DriftPolicy, *FieldError) {
	const fix = "write Report, Repair or Ignore"
	path := fieldPath("metadata.annotations", v1alpha1.DriftPolicyAnnotation)
	var raw any
	if isGeneric(fields) {
		path, raw = valuePath+".driftPolicy", fields["driftPolicy"]
	} else if annotated, given := machine.Annotations[v1alpha1.DriftPolicyAnnotation]; given {
		raw = annotated
	}
	if raw == nil {
		return v1alpha1.DriftReport, nil
	}
	text, isString := raw.(string)
	if !isString {
		return "", &FieldError{Path: path, Value: show(raw), Problem: "a string is required, but it is " +
			nameOf(raw), Fix: fix}
	}
	switch policy := v1alpha1.DriftPolicy(text); policy {
	case v1alpha1.DriftReport, v1alpha1.DriftRepair, v1alpha1.DriftIgnore:
		return policy, nil
	case "":
		return v1alpha1.DriftReport, nil
	}
	return "", &FieldError{Path: path, Fault: Unsupported, Value: show(text),
		Problem: show(text) + " is no drift policy", Fix: fix}
}
