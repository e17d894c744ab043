package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-iac/machine-iac-operator/internal/cluster/references"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

func TestSecretsThatMachinesName(t *testing.T) {
	w := newSharedWorld(t)
	for name, labels := range map[string]map[string]string{
		"labelled": {references.Label: "credentials"}, "plain": nil, "tfstate-default-x": {references.Label: "true"},
	} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name, Labels: labels}, StringData: map[string]string{"k": "hush"}}
		if err := w.Create(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
	}
	value := builder.ProviderSpec(map[string]any{
		"kind": "Any", "cloudsSecret": map[string]any{"name": "labelled"}, "userDataSecret": map[string]any{"name": "plain"}, "ignition": map[string]any{"userDataSecret": "plain"},
	})
	set := builder.In(w.namespace, builder.MachineSet(func(s *machinev1beta1.MachineSet) {
		s.Name, s.Spec.Template.Spec.ProviderSpec.Value = "named", value
	}))
	machine := builder.In(w.namespace, builder.Machine(func(m *machinev1beta1.Machine) { m.Name, m.Spec.ProviderSpec.Value = "named-a", value }))
	odd := builder.In(w.namespace, builder.Machine(func(m *machinev1beta1.Machine) {
		m.Name = "odd"
		m.Spec.ProviderSpec.Value = builder.ProviderSpec(map[string]any{
			"credentialsSecret": map[string]any{"name": "gone"}, "userDataSecret": map[string]any{"name": "tfstate-default-x"},
		})
	}))
	if err := w.Create(t.Context(), set, machine, odd); err != nil {
		t.Fatal(err)
	}
	said := w.ask(t, "secrets -o json")
	if said.code != 0 {
		t.Fatalf("exit code %d: %s", said.code, said.err)
	}
	if strings.Contains(said.out, "hush") {
		t.Error("it shows what is in a Secret")
	}
	var list secretList
	if err := json.Unmarshal([]byte(said.out), &list); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, one := range list.Items {
		got[one.Secret+" for "+string(one.Use)] = fmt.Sprintf("%s %v %d", one.Status, one.MachineSets, one.Machines)
	}
	want := map[string]string{
		"labelled for credentials": "Usable [named] 1", "plain for user-data": "Unlabelled [named] 1", "gone for credentials": "Missing [] 1",
		"tfstate-default-x for user-data": "Forbidden [] 1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	said = w.ask(t, "secrets --unusable --usable-secret=gone")
	if said.code != 0 || !strings.Contains(said.out, "kubectl label secret plain "+references.Label+"=user-data") || strings.Contains(said.out, "Usable") {
		t.Errorf("exit code %d: %s%s", said.code, said.out, said.err)
	}
}
