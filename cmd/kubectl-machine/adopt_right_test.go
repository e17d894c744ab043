package main

import (
	"strings"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/long"
)

// mayNotAdopt is how the webhooks of the manager begin and end what they say to a user without the right.
const mayNotAdopt = `user "alice" may not adopt machines.machine.openshift.io: kubectl create rolebinding adopter`

// withoutRight denies adoptions as the webhooks do, which do not run here.
func (w *backupWorld) withoutRight(t *testing.T) {
	t.Helper()
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}
	policy.Spec.MatchConstraints = &admissionregistrationv1.MatchResources{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: w.namespace}},
		ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{"CREATE", "UPDATE"},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{machinev1beta1.GroupName}, APIVersions: []string{"*"}, Resources: []string{"machines"}},
		}}},
	}
	policy.Spec.Validations = []admissionregistrationv1.Validation{{
		Expression: "!('" + lifecycle.AdoptionAnnotation + "' in object.metadata.?annotations.orValue({}))", Message: mayNotAdopt,
	}}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: policy.ObjectMeta}
	binding.Spec = admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: policy.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
	}
	if err := w.Create(t.Context(), policy, binding); err != nil {
		t.Fatal(err)
	}
	asking := map[string]string{lifecycle.AdoptionAnnotation: "Plan"}
	probe := builder.In(w.namespace, builder.Machine(builder.WithAnnotations(asking)))
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		err := w.Client.Create(t.Context(), probe.DeepCopy(), client.DryRunAll)
		if err != nil && strings.Contains(err.Error(), mayNotAdopt) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the policy is not in force: %v", err)
		}
	}
}

func TestWhoMayNotAdoptIsTold(t *testing.T) {
	long.Test(t)
	w := newBackupWorld(t)
	w.provided(t, "worker", "cloud:///1")
	w.listed(t, "kept", "vm-1")
	w.withoutRight(t)
	w.expect(t, "adopt worker", 1, "annotating the Machine worker: ", mayNotAdopt)
	w.expect(t, "adopt --plan", 1, mayNotAdopt)
	w.expect(t, "orphans vm-1 --adopt-as vm-1", 1, "creating the Machine vm-1: ", mayNotAdopt)
	w.expect(t, "orphans --destroy vm-1 --yes", 1, "creating the Machine vm-1: ", mayNotAdopt)
	w.isGone(t, "vm-1")
	if _, asked := w.get(t, "worker").Annotations[lifecycle.AdoptionAnnotation]; asked {
		t.Error("the annotation is set")
	}
}
