package iac

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

// generic returns the providerSpec of bench.machine by the kind for any module, with some values.
func generic(values map[string]any) *runtime.RawExtension {
	return builder.ProviderSpec(map[string]any{
		"apiVersion": "machine-iac.io/v1alpha1", "kind": "TerraformMachineProviderSpec", "module": "kubemark",
		"credentialsSecret": map[string]any{"name": "kubemark-credentials"}, "values": values,
	})
}

func TestAMachineMayChangeToTheKindForAnyModule(t *testing.T) {
	b := newBench(t)
	machine := b.machine()
	b.bring(machine)
	before := b.node(machine)
	values := map[string]any{"cpu": 4, "instanceType": "hollow", "region": "region-a", "zone": "zone-a"}
	machine.Spec.ProviderSpec.Value = generic(values)
	if err := b.Update(t.Context(), machine); err != nil {
		t.Errorf("Update: %v, want nothing to do for the same inputs in other words", err)
	}
	values["zone"] = "zone-b"
	machine.Spec.ProviderSpec.Value = generic(values)
	if err := b.drive(b.Update, machine); err != nil {
		t.Fatalf("Update: %v", err)
	}
	after := b.node(machine)
	if after == nil || after.UID != before.UID || after.Labels[corev1.LabelTopologyZone] != "zone-b" {
		t.Errorf("the Node is %v, want the one that was there in another zone", after)
	}
	if err := b.drive(b.Delete, machine); err != nil {
		t.Fatalf("Delete: %v", err)
	}
	if b.node(machine) != nil {
		t.Error("the Node is still there")
	}
}

func TestTheKindForAnyModuleNamesItsOwnFields(t *testing.T) {
	parallel(t)
	b := newBench(t)
	machine := b.machine()
	for name, tc := range map[string]struct {
		spec *runtime.RawExtension
		want string
	}{
		"a value of the wrong type": {generic(map[string]any{"cpu": "four"}), "spec.providerSpec.value.values.cpu: a number is required"},
		"a module that is not loaded": {
			builder.ProviderSpec(map[string]any{"apiVersion": "machine-iac.io/v1alpha1", "kind": "TerraformMachineProviderSpec", "module": "other"}),
			`spec.providerSpec.value.module: no provider module is called "other"; known are `,
		},
	} {
		t.Run(name, func(t *testing.T) {
			machine.Spec.ProviderSpec.Value = tc.spec
			err := b.Create(t.Context(), machine)
			if !actuators.IsInvalidConfiguration(err) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Create: %v, want an InvalidConfiguration with %q", err, tc.want)
			}
		})
	}
}

func TestTheKindForAnyModuleHasItsSize(t *testing.T) {
	b := newBench(t)
	machine := b.machine(func(spec map[string]any) { spec["memory"] = "3Gi" })
	want, err := b.Capacity(t.Context(), machine)
	if err != nil {
		t.Fatal(err)
	}
	machine.Spec.ProviderSpec.Value = generic(map[string]any{"cpu": 4, "memory": "3Gi", "region": "region-a", "zone": "zone-a"})
	got, err := b.Capacity(t.Context(), machine)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-own +generic):\n%s", err, diff)
	}
	machine.Spec.ProviderSpec.Value = generic(map[string]any{"cpu": 1e12})
	_, err = b.Capacity(t.Context(), machine)
	if want := "spec.providerSpec.value.values.cpu: not a valid count"; !actuators.IsInvalidConfiguration(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("Capacity: %v, want %q", err, want)
	}
}
