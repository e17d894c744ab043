package iac

import (
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
)

// deletedForeign deletes a Machine whose instance something else has made; its deletion is refused until the adoption is requested.
func (b *bench) deletedForeign(machine *machinev1beta1.Machine) {
	b.t.Helper()
	if doubt, uncertain := actuators.AsUncertain(b.Delete(b.t.Context(), machine)); !uncertain || doubt.Reason != actuators.ReasonNotAdopted {
		b.t.Fatalf("its deletion is not refused: %v", doubt)
	}
	live := &machinev1beta1.Machine{}
	if err := b.client.Get(b.t.Context(), client.ObjectKeyFromObject(machine), live); err != nil {
		b.t.Fatal(err)
	}
	machine.DeletionTimestamp = live.DeletionTimestamp
}

// settlesDeletion drives the deletion of a Machine until it has no error any more.
func (b *bench) settlesDeletion(machine *machinev1beta1.Machine) {
	b.t.Helper()
	err := b.drive(b.Delete, machine)
	for deadline := time.Now().Add(2 * time.Minute); err != nil && time.Now().Before(deadline); time.Sleep(pause) {
		err = b.drive(b.Delete, machine)
	}
	if err != nil {
		b.t.Fatalf("its deletion does not end: %v", err)
	}
}

// What cannot be read for the moment may be there: only searches that say that there is nothing let a Machine go.
func TestASearchThatFailsLetsNoMachineGo(t *testing.T) {
	b := newBench(t)
	proxy, _ := b.watched()
	machine := b.foreign()
	set(machine, b, "credentialsSecret", map[string]any{"name": "watched"})
	b.deletedForeign(machine)
	proxy.Close()
	ask(machine, lifecycle.AdoptionAdopt)
	began := b.starts()
	for deadline := time.Now().Add(2 * time.Minute); b.starts() < began+3; time.Sleep(pause) {
		if err := b.drive(b.Delete, machine); err == nil || b.node(machine) == nil {
			t.Fatalf("a search that failed has its deletion end: %v", err)
		}
		if time.Now().After(deadline) {
			t.Fatalf("it was searched for %d times in two minutes", b.starts()-began)
		}
	}
	if exists, err := b.Exists(t.Context(), machine); err == nil {
		t.Errorf("Exists is %t, want that it is not known", exists)
	}
	if f := b.factsOf(machine); !f.Foreign() {
		t.Errorf("the searches leave %+v", f)
	}

	set(machine, b, "credentialsSecret", map[string]any{"name": "kubemark-credentials"})
	b.settlesDeletion(machine)
	if b.node(machine) != nil {
		t.Error("its deletion leaves the Node that it has adopted")
	}
}
