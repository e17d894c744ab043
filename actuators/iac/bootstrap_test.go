package iac

import (
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/bootstrap"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
)

// bootstrapTokens returns the bootstrap tokens of a namespace's Machines that are in force.
func (b *bench) bootstrapTokens() (tokens []string) {
	b.t.Helper()
	found := &corev1.SecretList{}
	if err := plane.Client.List(b.t.Context(), found, client.InNamespace("kube-system"), client.HasLabels{bootstrap.Label}); err != nil {
		b.t.Fatal(err)
	}
	for _, secret := range found.Items {
		if strings.Contains(string(secret.Data["description"]), b.namespace+"/") {
			tokens = append(tokens, string(secret.Data["token-id"])+"."+string(secret.Data["token-secret"]))
		}
	}
	return tokens
}

func TestAnInstanceIsMadeWithItsBootstrapToken(t *testing.T) {
	b := newBench(t)
	b.upgrade(changedModule(t, "resource \"terraform_data\" \"booted\" {\n  input = nonsensitive(var.user_data)\n  lifecycle {\n    ignore_changes = [input]\n  }\n}\n"), "owner-2")
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "joins", Annotations: map[string]string{bootstrap.Annotation: "true"}},
		StringData: map[string]string{"userData": "join <<BOOTSTRAP_TOKEN>>"},
	}
	if err := plane.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	machine := b.machine(func(spec map[string]any) { spec["userDataSecret"] = map[string]any{"name": "joins"} })
	b.bring(machine)
	tokens := b.bootstrapTokens()
	if len(tokens) != 1 || !strings.Contains(string(b.factsOf(machine).Raw), `"join `+tokens[0]+`"`) {
		t.Fatalf("%d tokens are in force, and the instance was made with %q", len(tokens), regexp.MustCompile(`"join [^"]*"`).FindString(string(b.factsOf(machine).Raw)))
	}
	if err := b.bootstrap.Remove(t.Context(), machine.UID); err != nil {
		t.Fatal(err)
	}
	starts := b.starts()
	if err := b.drive(b.Update, machine); err != nil || b.starts() != starts {
		t.Errorf("Update: %v after %d engine processes, want no run", err, b.starts()-starts)
	}
	if found := b.checked(machine); found.Result != record.DriftNone {
		t.Errorf("a check found %+v", found)
	}
	if left := b.bootstrapTokens(); len(left) > 0 {
		t.Error("an instance that exists got a token")
	}
}
