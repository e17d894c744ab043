package webhooks

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-iac/machine-iac-operator/test/builder"
)

const labelMismatch = "spec.template.metadata.labels: Invalid value: {\"a\":\"b\"}: `selector` does not match template `labels`: " +
	"the selector is " + builder.ClusterLabel + "=" + builder.ClusterID + "," + builder.MachineSetLabel + "=workers, the labels are a=b; labels of Machines belong in spec.template.metadata.labels"

func withTemplateLabels(labels map[string]string) func(*machinev1beta1.MachineSet) {
	return func(s *machinev1beta1.MachineSet) { s.Spec.Template.Labels = labels }
}

func selecting(selector metav1.LabelSelector) func(*machinev1beta1.MachineSet) {
	return func(s *machinev1beta1.MachineSet) { s.Spec.Selector = selector }
}

var (
	unreadable = metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Is"}}}
	otherOne   = metav1.LabelSelector{MatchLabels: map[string]string{builder.ClusterLabel: builder.ClusterID}}
)

func TestDefaultersRefuseWhatHasNoProviderSpec(t *testing.T) {
	const want = "providerSpec.value: Required value: a value must be provided"
	for name, err := range map[string]error{
		"Machine":    (&machineDefaulter{}).Default(t.Context(), machineWith(withValue(nil))),
		"MachineSet": (&machineSetDefaulter{}).Default(t.Context(), setWith(withTemplate(nil))),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
	}
	for name, err := range map[string]error{
		"Machine":    (&machineDefaulter{}).Default(t.Context(), machineWith(withValue(nil), leaving())),
		"MachineSet": (&machineSetDefaulter{}).Default(t.Context(), setWith(withTemplate(nil), setLeaving())),
	} {
		if err != nil {
			t.Errorf("%s that is being deleted: %v", name, err)
		}
	}
}

func TestNewMachineSet(t *testing.T) {
	tests := map[string]struct {
		set          *machinev1beta1.MachineSet
		clusterID    string
		wantErrs     []string
		wantWarnings []string
	}{
		"all is well":              {set: setWith()},
		"the module's own example": {set: exampleSet(t)},
		"no providerSpec":          {set: setWith(withTemplate(nil)), wantErrs: []string{"providerSpec.value: Required value: a value must be provided"}},
		"a selector that is a riddle": {
			set:      setWith(selecting(unreadable)),
			wantErrs: []string{`spec.selector: Invalid value: {"matchExpressions":[{"key":"a","operator":"Is"}]}: "Is" is not a valid label selector operator`},
		},
		"a selector of everything": {
			set:      setWith(selecting(metav1.LabelSelector{})),
			wantErrs: []string{"spec.selector: Invalid value: {}: it is empty and would select every Machine; name at least one label"},
		},
		"a template that is not selected": {
			set: setWith(withTemplateLabels(map[string]string{"a": "b"})), clusterID: "c1", wantErrs: []string{labelMismatch},
		},
		"fewer than no replicas": {
			set: setWith(builder.WithReplicas(-1)), wantErrs: []string{"spec.replicas: Invalid value: -1: set it to zero or more"},
		},
		"problems of both are listed": {
			set:      setWith(withTemplate(kubemarkSpec(`,"zone":"a/b","pods":0`)), builder.WithReplicas(-1)),
			wantErrs: []string{"spec.replicas: Invalid value: -1: set it to zero or more", badPods, badZone},
		},
		"a kind that no module serves": {
			set: setWith(withTemplate(builder.ProviderSpec(nil))),
			wantErrs: []string{`providerSpec.kind: Unsupported value: "TestMachineProviderSpec": no provider module serves ` +
				`apiVersion "machine.openshift.io/v1beta1", kind "TestMachineProviderSpec"; known are ` +
				`kubemarkproviderconfig.openshift.io/v1alpha1 KubemarkMachineProviderConfig, machine-iac.io/v1alpha1 TerraformMachineProviderSpec`},
		},
		"unknown fields warn in the same words as those of a Machine": {
			set:          setWith(withTemplate(kubemarkSpec(`,"x":1`))),
			wantWarnings: []string{`providerSpec.value: Unsupported value: "x": Unknown field (x) will be ignored`},
		},
		"a long name, of which Machines get the beginning": {
			set: setWith(func(s *machinev1beta1.MachineSet) { s.Name = strings.Repeat("n", 70) }),
		},
		"Machines that would lack the cluster's name": {
			set: setWith(func(s *machinev1beta1.MachineSet) {
				delete(s.Spec.Template.Labels, builder.ClusterLabel)
				delete(s.Spec.Selector.MatchLabels, builder.ClusterLabel)
			}),
			wantWarnings: []string{`spec.template.metadata.labels: Required value: nothing is done for a Machine without the label ` +
				`machine.openshift.io/cluster-api-cluster; set it to the name of the cluster's infrastructure`},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := testRules(t, tc.clusterID).newMachineSet(tc.set)
			if diff := cmp.Diff(tc.wantErrs, texts(got.errs)); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantWarnings, got.warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestChangedMachineSet(t *testing.T) {
	bad := withTemplate(kubemarkSpec(`,"zone":"a/b"`))
	mismatch := withTemplateLabels(map[string]string{"a": "b"})
	const immutable = "spec.selector: Forbidden: selector is immutable"
	tests := map[string]struct {
		before, set  *machinev1beta1.MachineSet
		wantErrs     []string
		wantWarnings []string
	}{
		"it is scaled": {before: setWith(), set: setWith(builder.WithReplicas(9))},
		"the selector changes": {
			before: setWith(), set: setWith(selecting(otherOne)), wantErrs: []string{immutable},
		},
		"the selector changes while it is deleted": {
			before: setWith(setLeaving()), set: setWith(setLeaving(), selecting(otherOne)), wantErrs: []string{immutable},
		},
		"a selector that nobody could read is fixed": {
			before: setWith(selecting(unreadable)), set: setWith(selecting(otherOne)),
		},
		"a selector of everything is fixed": {
			before: setWith(selecting(metav1.LabelSelector{})), set: setWith(selecting(otherOne)),
		},
		"the template loses the labels that are selected": {
			before: setWith(), set: setWith(mismatch), wantErrs: []string{labelMismatch},
		},
		"one that never selected its template is scaled to zero": {
			before: setWith(mismatch), set: setWith(mismatch, builder.WithReplicas(0)), wantWarnings: []string{labelMismatch + asBefore},
		},
		"one that a later rule forbids is scaled to zero": {
			before: setWith(bad), set: setWith(bad, builder.WithReplicas(0)), wantWarnings: []string{badZone + asBefore},
		},
		"replicas become negative": {
			before: setWith(), set: setWith(builder.WithReplicas(-1)), wantErrs: []string{"spec.replicas: Invalid value: -1: set it to zero or more"},
		},
		"the template becomes wrong": {before: setWith(), set: setWith(bad), wantErrs: []string{badZone}},
		"a changed template is checked as a whole": {
			before: setWith(bad), set: setWith(withTemplate(kubemarkSpec(`,"zone":"a/b","pods":2`))), wantErrs: []string{badZone},
		},
		"finalizers of one that breaks every rule": {
			before: setWith(withTemplate(nil), selecting(unreadable), builder.WithReplicas(-1), setLeaving()),
			set: setWith(withTemplate(nil), selecting(unreadable), builder.WithReplicas(-1), setLeaving(), func(s *machinev1beta1.MachineSet) {
				s.Finalizers = nil
			}),
		},
		"one that is deleted is scaled although it breaks rules": {
			before:       setWith(bad, mismatch, setLeaving()),
			set:          setWith(bad, mismatch, setLeaving(), builder.WithReplicas(0)),
			wantWarnings: []string{labelMismatch + asBefore, badZone + asBefore},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := testRules(t, "").changedMachineSet(tc.before, tc.set)
			if diff := cmp.Diff(tc.wantErrs, texts(got.errs)); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantWarnings, got.warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}
