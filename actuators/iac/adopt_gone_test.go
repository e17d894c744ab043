package iac

import (
	"strings"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
)

// deletedForeign deletes a Machine whose instance something else has made; its deletion is refused
// until the adoption is requested.
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
	for deadline := time.Now().Add(patience); err != nil && time.Now().Before(deadline); time.Sleep(pause) {
		err = b.drive(b.Delete, machine)
	}
	if err != nil {
		b.t.Fatalf("its deletion does not end: %v", err)
	}
}

// afterAMinute are pieces of the kubemark module to replace, so that what it does not find counts a
// minute later.
var afterAMinute = []string{"  lookup:\n    absent:\n", "  lookup:\n    settleSeconds: 60\n    absent:\n"}

func TestNothingToAdoptLetsADeletedMachineGo(t *testing.T) {
	parallel(t)
	for name, names := range map[string]func(*machinev1beta1.Machine){
		"by its provider ID": func(*machinev1beta1.Machine) {},
		"by the instance's ID": func(machine *machinev1beta1.Machine) {
			machine.Spec.ProviderID = nil
			metav1.SetMetaDataAnnotation(&machine.ObjectMeta, lifecycle.AdoptIDAnnotation, machine.Name)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.upgrade(changedModule(t, "", afterAMinute...), "owner-1")
			machine := b.foreign()
			if err := b.client.Delete(t.Context(), b.node(machine)); err != nil {
				t.Fatal(err)
			}
			names(machine)
			b.deletedForeign(machine)
			b.ask(machine, lifecycle.AdoptionAdopt)
			began := b.clock.Now()
			b.settlesDeletion(machine)
			if took := b.clock.Now().Sub(began); took < time.Minute {
				t.Errorf("it is let go after %s, want two searches a minute apart", took)
			}
			if exists, err := b.Exists(t.Context(), machine); exists || err != nil {
				t.Errorf("Exists is %t, %v", exists, err)
			}
			if f := b.factsOf(machine); f.Stored || !f.Destroyed() {
				t.Errorf("it leaves %+v", f)
			}
			if said := b.said("Deleted nothing: no instance found with"); said == "" {
				t.Error("no event says why nothing was deleted")
			}
		})
	}
}

// said returns an event that has a text, empty for none.
func (b *bench) said(text string) string {
	b.t.Helper()
	for {
		select {
		case event := <-b.recorder.(*events.FakeRecorder).Events:
			if strings.Contains(event, text) {
				return event
			}
		default:
			return ""
		}
	}
}

// What cannot be read for the moment may be there: only searches that say that there is nothing let
// a Machine go.
func TestASearchThatFailsLetsNoMachineGo(t *testing.T) {
	b := newBench(t)
	proxy, _ := b.watched()
	machine := b.foreign()
	set(machine, b, "credentialsSecret", map[string]any{"name": "watched"})
	b.deletedForeign(machine)
	proxy.Close()
	b.ask(machine, lifecycle.AdoptionAdopt)
	began := b.starts()
	for deadline := time.Now().Add(patience); b.starts() < began+3; time.Sleep(pause) {
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
