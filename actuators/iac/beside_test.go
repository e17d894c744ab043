package iac

import (
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
)

// noticed drives a Machine whose instance is removed until that is noticed.
func (b *bench) noticed(machine *machinev1beta1.Machine) {
	b.t.Helper()
	if err := b.client.Delete(b.t.Context(), b.node(machine)); err != nil {
		b.t.Fatal(err)
	}
	b.later(2 * time.Hour)
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(pause) {
		if there, err := b.Exists(b.t.Context(), machine); err == nil && !there {
			return
		}
		_ = b.Update(b.t.Context(), machine)
	}
	b.t.Errorf("the instance is gone, and the last check is %+v", b.record(machine).Check)
}

func TestAnInstanceIsWatchedWhateverKeepsItFromAnUpdate(t *testing.T) {
	b := newBench(t)
	b.upgrade(b.seeing(), "owner-1")
	setting := func(name string, value any) func(*machinev1beta1.Machine) {
		return func(machine *machinev1beta1.Machine) { set(machine, b, name, value) }
	}
	raw := func(text string) func(*machinev1beta1.Machine) {
		return func(m *machinev1beta1.Machine) { m.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: []byte(text)} }
	}
	credentials := func(name string, change func(*corev1.Secret)) func(*machinev1beta1.Machine) {
		if change != nil {
			b.secret(name, change)
		}
		return setting("credentialsSecret", map[string]any{"name": name})
	}
	for name, hinder := range map[string]func(*machinev1beta1.Machine){
		"a refused change":                  setting("cpu", 8),
		"a value of the wrong type":         setting("cpu", "four"),
		"a value that a validation rejects": setting("cpu", -1),
		"credentials that do not exist":     credentials("missing", nil),
		"credentials that lack a key":       credentials("short", func(s *corev1.Secret) { delete(s.Data, "token") }),
		"credentials that lead elsewhere": credentials("elsewhere", func(s *corev1.Secret) {
			s.Data["server"] = []byte("https://elsewhere.example:6443")
		}),
		"a kind that no module serves":         raw(`{"apiVersion":"example.com/v1","kind":"Nothing"}`),
		"a providerSpec that is not an object": raw(`[]`),
	} {
		t.Run(name, func(t *testing.T) {
			machine := b.machine()
			b.bring(machine)
			hinder(machine)
			if err := b.drive(b.Update, machine); err == nil {
				t.Fatal("nothing keeps the Machine from the update")
			}
			b.noticed(machine)
		})
	}
}

// A refusal stays the answer while the instance is checked, and a check on request is answered too.
func TestARefusedChangeHidesNoRequestedCheck(t *testing.T) {
	b := newBench(t)
	machine := b.machine()
	b.bring(machine)
	set(machine, b, "cpu", 8)
	if err := b.drive(b.Update, machine); !isReason(err, machinev1beta1.UnsupportedChangeMachineError) {
		t.Fatalf("Update: %v, want UnsupportedChange", err)
	}
	metav1.SetMetaDataAnnotation(&machine.ObjectMeta, record.CheckDriftAnnotation, "now")
	for deadline := time.Now().Add(patience); readProviderStatus(machine).LastDriftCheckRequest != "now"; time.Sleep(pause) {
		if err := b.Update(t.Context(), machine); !isReason(err, machinev1beta1.UnsupportedChangeMachineError) {
			t.Fatalf("Update: %v, want UnsupportedChange all the time", err)
		}
		if time.Now().After(deadline) {
			t.Fatal("the check was not made")
		}
	}
	if found := b.record(machine).Check; found.Result != record.DriftNone {
		t.Errorf("the check found %+v, want the instance as it was applied", found)
	}
}

// What has drifted is repaired with what was applied, and the refusal stands.
func TestARefusedChangeHidesNoRepair(t *testing.T) {
	b := newBench(t)
	b.upgrade(b.seeing(), "owner-1")
	machine := b.machine()
	b.bring(machine)
	applied := machine.Spec.ProviderSpec.Value
	set(machine, b, "cpu", 8)
	b.repairs(machine)
	if err := b.drive(b.Update, machine); !isReason(err, machinev1beta1.UnsupportedChangeMachineError) {
		t.Fatalf("Update: %v, want UnsupportedChange", err)
	}
	before := b.record(machine)
	node := b.node(machine)
	node.Labels[corev1.LabelTopologyZone] = "elsewhere"
	if err := b.client.Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	b.later(2 * time.Hour)
	for deadline := time.Now().Add(patience); b.record(machine).Repair == nil; time.Sleep(pause) {
		_ = b.Update(t.Context(), machine)
		if time.Now().After(deadline) {
			t.Fatalf("nothing was repaired; the last check is %+v", b.record(machine).Check)
		}
	}
	if got := b.node(machine).Labels[corev1.LabelTopologyZone]; got != "zone-a" {
		t.Errorf("the Node is in %s, want it back in zone-a", got)
	}
	after := b.record(machine)
	if after.Fingerprint != before.Fingerprint || after.Refusal == nil || *after.Refusal != *before.Refusal {
		t.Errorf("the record is %+v, want fingerprint and refusal of %+v", after, before)
	}
	starts := b.starts()
	machine.Spec.ProviderSpec.Value = applied
	if err := b.drive(b.Update, machine); err != nil || b.starts() != starts {
		t.Errorf("Update with the change taken back: %v after %d engine processes, want none needed", err, b.starts()-starts)
	}
}

func TestAnInstanceIsWatchedWithoutItsModule(t *testing.T) {
	b := newBench(t)
	machine := b.machine()
	b.bring(machine)
	for _, loaded := range b.catalog.Modules() {
		stored := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "machine-iac-module-" + loaded.Digest()}}
		if err := b.client.Delete(t.Context(), stored); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
	b.upgrade(changedModule(t, "", "tostring(var.provider_spec.pods)", "tostring(var.provider_spec.pods + 1)"), "owner-2")
	if err := b.drive(b.Update, machine); !isReason(err, machinev1beta1.UnsupportedChangeMachineError) {
		t.Fatalf("Update: %v, want UnsupportedChange", err)
	}
	b.noticed(machine)
}
