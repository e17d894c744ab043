package render

import (
	"testing"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
)

func TestDriftPolicy(t *testing.T) {
	const annotation = `metadata.annotations["machine-iac.io/drift-policy"]`
	tests := map[string]struct {
		providerSpec string
		annotation   string
		want         v1alpha1.DriftPolicy
		wantErr      string
	}{
		"a module's own kind reports": {providerSpec: valid + `}`, want: v1alpha1.DriftReport},
		"a module's own kind goes by the annotation": {providerSpec: valid + `}`, annotation: "Repair",
			want: v1alpha1.DriftRepair},
		"a field of a module's own kind is the module's": {
			providerSpec: valid + `,"driftPolicy":"Ignore"}`, want: v1alpha1.DriftReport,
		},
		"an annotation that is no policy": {
			providerSpec: valid + `}`, annotation: "repair",
			wantErr: annotation + `: "repair" is no drift policy; write Report, Repair or Ignore`,
		},
		"the generic kind reports": {providerSpec: genericStart + `}`,
			want: v1alpha1.DriftReport},
		"the generic kind goes by its field": {providerSpec: genericStart + `,"driftPolicy":"Ignore"}`,
			want: v1alpha1.DriftIgnore},
		"the generic kind does not go by the annotation": {providerSpec: genericStart + `}`, annotation: "Repair",
			want: v1alpha1.DriftReport},
		"null is left out": {providerSpec: genericStart + `,"driftPolicy":null}`,
			want: v1alpha1.DriftReport},
		"the empty string is left out": {providerSpec: genericStart + `,"driftPolicy":""}`,
			want: v1alpha1.DriftReport},
		"a field that is no policy": {
			providerSpec: genericStart + `,"driftPolicy":"Replace"}`,
			wantErr:      `spec.providerSpec.value.driftPolicy: "Replace" is no drift policy; write Report, Repair or Ignore`,
		},
		"a field that is no string": {
			providerSpec: genericStart + `,"driftPolicy":["Report"]}`,
			wantErr:      `spec.providerSpec.value.driftPolicy: a string is required, but it is a list; write Report, Repair or Ignore`,
		},
		"another kind of the group": {
			providerSpec: `{"apiVersion":"machine-iac.io/v1alpha1","kind":"Module","driftPolicy":"Ignore"}`,
			want:         v1alpha1.DriftReport,
		},
		"no providerSpec": {wantErr: "spec.providerSpec.value: an object is required, but it is missing; write the " +
			"providerSpec of a provider module"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			machine := machineWith(tc.providerSpec)
			if tc.annotation != "" {
				machine.Annotations = map[string]string{v1alpha1.DriftPolicyAnnotation: tc.annotation}
			}
			got, err := DriftPolicy(machine)
			if textOf(err) != tc.wantErr || got != tc.want || err != nil && !IsFieldError(err) {
				t.Errorf("want %q and the error %q, got %q and %v", tc.want, tc.wantErr, got, err)
			}
		})
	}
	if _, err := DriftPolicy(nil); err == nil || IsFieldError(err) {
		t.Errorf("want no Machine to be a mistake of the caller, got %v", err)
	}
}
