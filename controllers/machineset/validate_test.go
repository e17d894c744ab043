package machineset

import (
	"strings"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-iac/machine-iac-operator/test/builder"
)

func TestValidate(t *testing.T) {
	tcs := map[string]struct {
		change    func(*machinev1beta1.MachineSet)
		wantError string
	}{
		"sound": {change: func(*machinev1beta1.MachineSet) {}},
		"no replicas": {
			change:    func(s *machinev1beta1.MachineSet) { s.Spec.Replicas = nil },
			wantError: "spec.replicas is missing",
		},
		"negative replicas": {change: builder.WithReplicas(-1), wantError: "spec.replicas is -1"},
		"a selector that cannot be read": {
			change: func(s *machinev1beta1.MachineSet) {
				s.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "x", Operator: "Like"}}
			},
			wantError: "spec.selector cannot be read",
		},
		"an empty selector": {
			change:    func(s *machinev1beta1.MachineSet) { s.Spec.Selector = metav1.LabelSelector{} },
			wantError: "spec.selector is empty",
		},
		"a template that the selector misses": {
			change:    func(s *machinev1beta1.MachineSet) { delete(s.Spec.Template.Labels, builder.MachineSetLabel) },
			wantError: "does not match spec.template.metadata.labels",
		},
		"an unknown delete policy": {change: builder.WithDeletePolicy("Biggest"), wantError: "use Random, Newest or Oldest"},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			selector, err := validate(&builder.MachineSet(tc.change).Spec)
			if tc.wantError == "" {
				if err != nil || selector == nil {
					t.Errorf("got %v, %v; want a selector", selector, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.wantError) {
				t.Errorf("got error %v, want one that says %q", err, tc.wantError)
			}
		})
	}
}
