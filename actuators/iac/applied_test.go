package iac

import (
	"strings"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/internal/desired"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

func TestAMachineThatCannotBeReadIsDeletedAllTheSame(t *testing.T) {
	b := newBench(t)
	for name, broken := range map[string]*runtime.RawExtension{
		"a field of the wrong type":   b.machine(func(spec map[string]any) { spec["cpu"] = "four" }).Spec.ProviderSpec.Value,
		"a value that is not allowed": b.machine(func(spec map[string]any) { spec["cpu"] = -1 }).Spec.ProviderSpec.Value,
		"no credentials named":        b.machine(func(spec map[string]any) { delete(spec, "credentialsSecret") }).Spec.ProviderSpec.Value,
		"a kind nobody serves":        {Raw: []byte(`{"apiVersion":"example.com/v1","kind":"Nothing"}`)},
		"what is no object":           {Raw: []byte(`[]`)},
		"nothing at all":              nil,
	} {
		t.Run(name, func(t *testing.T) {
			machine := b.machine()
			b.bring(machine)
			b.events()
			machine.Spec.ProviderSpec.Value = broken
			if err := b.drive(b.Delete, machine); err != nil || b.node(machine) != nil {
				t.Fatalf("Delete: %v, want the instance gone", err)
			}
			if sent := b.events(); len(sent) != 1 || !strings.Contains(sent[0], "Deleted the instance") {
				t.Errorf("events %q, want the Delete alone", sent)
			}
		})
	}
}

func TestWhatAChangeHasMadeIsRemembered(t *testing.T) {
	b := newBench(t)
	machine := b.machine()
	b.bring(machine)
	set(machine, b, "zone", "zone-b")
	if err := b.drive(b.Update, machine); err != nil {
		t.Fatal(err)
	}
	set(machine, b, "cpu", 8) // which is refused
	if err := b.drive(b.Update, machine); !isReason(err, machinev1beta1.UnsupportedChangeMachineError) {
		t.Fatalf("Update: %v, want UnsupportedChange", err)
	}
	kept := b.applied(machine)
	if spec := string(kept.Variables["provider_spec"]); !strings.Contains(spec, "zone-b") || !strings.Contains(spec, `"cpu":4`) {
		t.Errorf("the stored inputs are %s, want what was made and not what was refused", spec)
	}
}

func (b *bench) applied(machine *machinev1beta1.Machine) *desired.AppliedInputs {
	b.t.Helper()
	f, err := b.facts(b.t.Context(), machine)
	if err != nil {
		b.t.Fatal(err)
	}
	kept, err := desired.ReadInputs(f.Inputs)
	if err != nil {
		b.t.Fatal(err)
	}
	return kept
}

func TestALostInstanceIsFoundWithTheStoredInputs(t *testing.T) {
	b := newBench(t)
	machine := b.machine()
	b.bring(machine)
	_, used, err := b.desired.Complete(machine)
	if err != nil {
		t.Fatal(err)
	}
	b.crash(machine, used)
	set(machine, b, "cpu", "four")
	if err := b.drive(b.Delete, machine); err != nil || b.node(machine) != nil {
		t.Errorf("Delete: %v, want the instance that the state had lost gone", err)
	}
}

func TestStoredInputsWaitForTheirSecret(t *testing.T) {
	b := newBench(t)
	secret := b.secret("mine", func(*corev1.Secret) {})
	machine := b.machine(func(spec map[string]any) { spec["credentialsSecret"] = map[string]any{"name": secret.Name} })
	b.bring(machine)
	if err := b.client.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	set(machine, b, "cpu", "four")
	err := b.drive(b.Delete, machine)
	if !isReason(err, machinev1beta1.DeleteMachineError) || !strings.Contains(err.Error(), b.namespace+"/mine") {
		t.Fatalf("Delete: %v, want a DeleteError that names the Secret", err)
	}
	b.secret("mine", func(*corev1.Secret) {})
	if err := b.drive(b.Delete, machine); err != nil || b.node(machine) != nil {
		t.Errorf("Delete with the Secret back: %v, want the instance gone", err)
	}
}

func TestInputsOfStatesFromBeforeAreRememberedByTheNextRun(t *testing.T) {
	b := newBench(t)
	machine := b.machine()
	b.bring(machine)
	key := state.KeyFor(machine.Namespace, machine.UID)
	head := &corev1.Secret{}
	if err := b.client.Get(t.Context(), types.NamespacedName{Namespace: key.Namespace, Name: key.Name}, head); err != nil {
		t.Fatal(err)
	}
	delete(head.Data, "machine-iac.inputs")
	if err := b.client.Update(t.Context(), head); err != nil {
		t.Fatal(err)
	}
	b.checked(machine)
	if kept := b.applied(machine); kept.CredentialsSecret != "kubemark-credentials" || len(kept.Keys) != 3 {
		t.Errorf("remembered is %+v, want the inputs", kept)
	}
}
