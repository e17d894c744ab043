package webhooks_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/webhooks"
)

// registered is what a webhook of the install tree asks for, where it may differ from the others.
type registered struct {
	Path, Resources, Operations string
}

// TestManifestsRegisterWhatIsServed holds the install tree to the names and the manners of the
// Machine API, and to the paths here.
func TestManifestsRegisterWhatIsServed(t *testing.T) {
	const create, both = "[CREATE]", "[CREATE UPDATE]"
	want := map[string]registered{
		"default.machine.machine.openshift.io":               {webhooks.MutateMachinePath, "[machines]", create},
		"default.machineset.machine.openshift.io":            {webhooks.MutateMachineSetPath, "[machinesets]", create},
		"default.machinedeployment.machine.openshift.io":     {webhooks.MutateMachineDeploymentPath, "[machinedeployments]", create},
		"validation.machinedeployment.machine.openshift.io":  {webhooks.ValidateMachineDeploymentPath, "[machinedeployments]", both},
		"adoption.machine.openshift.io":                      {webhooks.ReviewAdoptionPath, "[machines machinesets]", both},
		"validation.machine.machine.openshift.io":            {webhooks.ValidateMachinePath, "[machines]", both},
		"validation.machineset.machine.openshift.io":         {webhooks.ValidateMachineSetPath, "[machinesets]", both},
		"validation.machinehealthcheck.machine.openshift.io": {webhooks.ValidateMachineHealthCheckPath, "[machinehealthchecks]", both},
		"deletion.namespace.machine.openshift.io":            {webhooks.ReviewNamespacePath, "[namespaces]", "[DELETE]"},
	}
	mutating, validating := &admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
	decode(t, "mutating.yaml", mutating)
	decode(t, "validating.yaml", validating)
	if mutating.Name != "machine-api" || validating.Name != "machine-api" {
		t.Errorf("the configurations are named %q and %q", mutating.Name, validating.Name)
	}
	hooks := validating.Webhooks
	for _, hook := range mutating.Webhooks { // the fields that both have
		hooks = append(hooks, admissionregistrationv1.ValidatingWebhook{
			Name: hook.Name, ClientConfig: hook.ClientConfig, Rules: hook.Rules, FailurePolicy: hook.FailurePolicy, MatchPolicy: hook.MatchPolicy,
			NamespaceSelector: hook.NamespaceSelector, SideEffects: hook.SideEffects, TimeoutSeconds: hook.TimeoutSeconds,
			AdmissionReviewVersions: hook.AdmissionReviewVersions,
		})
	}
	got := map[string]registered{}
	for _, hook := range hooks {
		rule := hook.Rules[0]
		got[hook.Name] = registered{*hook.ClientConfig.Service.Path, fmt.Sprint(rule.Resources), fmt.Sprint(rule.Operations)}
		checkManners(t, hook)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("registered (-want +got):\n%s", diff)
	}
}

// checkManners sees to what all webhooks have in common.
func checkManners(t *testing.T, hook admissionregistrationv1.ValidatingWebhook) {
	t.Helper()
	ignore, none, equivalent := admissionregistrationv1.Ignore, admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.Equivalent
	timeout, port, scope := int32(10), int32(443), admissionregistrationv1.NamespacedScope
	group, version := "machine.openshift.io", "v1beta1"
	if *hook.ClientConfig.Service.Path == webhooks.ReviewNamespacePath {
		group, version, scope = "", "v1", admissionregistrationv1.ClusterScope
	}
	want := admissionregistrationv1.ValidatingWebhook{
		Name: hook.Name, FailurePolicy: &ignore, SideEffects: &none, MatchPolicy: &equivalent, TimeoutSeconds: &timeout,
		AdmissionReviewVersions: []string{"v1"},
		NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "openshift-machine-api"}},
		ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{
			Namespace: "openshift-machine-api", Name: "machine-api-operator-webhook", Port: &port, Path: hook.ClientConfig.Service.Path,
		}},
		Rules: []admissionregistrationv1.RuleWithOperations{{Operations: hook.Rules[0].Operations, Rule: admissionregistrationv1.Rule{
			APIGroups: []string{group}, APIVersions: []string{version}, Resources: hook.Rules[0].Resources, Scope: &scope,
		}}},
	}
	if diff := cmp.Diff(want, hook); diff != "" {
		t.Errorf("%s (-want +got):\n%s", hook.Name, diff)
	}
}

func decode(t *testing.T, name string, into any) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "install", "controllers", "webhooks", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(content, into); err != nil {
		t.Fatalf("reading %s: %v", name, err)
	}
}
