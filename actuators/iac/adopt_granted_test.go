package iac

import (
	"strings"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/internal/adoption"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/test/shortdir"
)

// leavesAlone expects neither verb to touch the Node of a Machine, and the condition to have a
// reason and a message.
func (b *bench) leavesAlone(t *testing.T, machine *machinev1beta1.Machine, wantCondition, wantMessage string) {
	t.Helper()
	before := b.node(machine)
	for range 2 {
		doubt, uncertain := actuators.AsUncertain(b.Update(t.Context(), machine))
		if !uncertain || !strings.Contains(doubt.Message, wantMessage) {
			t.Errorf("Update: %v, want %q", doubt, wantMessage)
		}
	}
	status := readProviderStatus(machine)
	refused := ""
	if status.Adoption != nil {
		refused = status.Adoption.Refused
	}
	if got := adoptionCondition(machine); got != wantCondition || !strings.Contains(refused, wantMessage) {
		t.Errorf("the condition is %q, the status %+v; want %s, and %q", got, status.Adoption, wantCondition, wantMessage)
	}
	if _, uncertain := actuators.AsUncertain(b.Delete(t.Context(), machine)); !uncertain {
		t.Error("its deletion is not refused")
	}
	if after := b.node(machine); after == nil || after.ResourceVersion != before.ResourceVersion {
		t.Error("the Node was touched")
	}
	if _, known := b.pool.Status(runs.Key(machine.UID)); known {
		t.Error("a run was submitted")
	}
}

// A Machine that came past the webhooks asks for nothing that counts.
func TestARequestWithoutAValidGrantAdoptsNothing(t *testing.T) {
	parallel(t)
	b := newBench(t)
	granted := b.foreign()
	b.ask(granted, lifecycle.AdoptionAdopt)
	for name, edit := range map[string]func(*machinev1beta1.Machine){
		"without a grant": func(m *machinev1beta1.Machine) { delete(m.Annotations, adoption.GrantAnnotation) },
		"with a copied one": func(m *machinev1beta1.Machine) {
			m.Annotations[adoption.GrantAnnotation] = granted.Annotations[adoption.GrantAnnotation]
		},
		"with another ID since": func(m *machinev1beta1.Machine) {
			m.Annotations[lifecycle.AdoptIDAnnotation] = "/api/v1/nodes/" + granted.Name
		},
		"with another value": func(m *machinev1beta1.Machine) {
			m.Annotations[lifecycle.AdoptionAnnotation] = string(lifecycle.AdoptionPlan)
		},
		"with another instance": func(m *machinev1beta1.Machine) { m.Spec.ProviderID = granted.Spec.ProviderID },
		"in the name of somebody": func(m *machinev1beta1.Machine) {
			m.Annotations[adoption.GrantAnnotation] = `{"at":"2026-03-01T12:00:00Z","code":""}`
		},
	} {
		t.Run(name, func(t *testing.T) {
			machine := b.foreign()
			b.ask(machine, lifecycle.AdoptionAdopt)
			edit(machine)
			b.leavesAlone(t, machine, "False "+adoption.ReasonNotGranted, "without a valid grant in annotation "+
				"machine-iac.io/adoption-granted: request it again as a user who may adopt")
		})
	}
}

// Nothing is created beside an instance that a Machine without a provider ID is to get.
func TestARequestWithoutAGrantCreatesNothing(t *testing.T) {
	b := newBench(t)
	machine := b.machine()
	metav1.SetMetaDataAnnotation(&machine.ObjectMeta, lifecycle.AdoptionAnnotation, string(lifecycle.AdoptionPlan))
	_, uncertain := actuators.AsUncertain(b.Create(t.Context(), machine))
	if !uncertain || b.node(machine) != nil || adoptionCondition(machine) != "False "+adoption.ReasonNotGranted {
		t.Errorf("the condition is %q, the Node %v", adoptionCondition(machine), b.node(machine))
	}
}

func TestAManagerThatNeverAdoptsSaysSo(t *testing.T) {
	b := newBench(t)
	b.adopts = adoption.Never
	b.start(shortdir.New(t), "owner-2")
	machine := b.foreign()
	b.ask(machine, lifecycle.AdoptionAdopt)
	b.leavesAlone(t, machine, "False "+adoption.ReasonDisabled,
		"the manager's --adoption=Never refuses all: set it to OnRequest")
}

func TestAReleaseWithoutAGrantForgetsNothing(t *testing.T) {
	b := newBench(t)
	machine := b.machine()
	b.bring(machine)
	metav1.SetMetaDataAnnotation(&machine.ObjectMeta, lifecycle.AdoptionAnnotation, string(lifecycle.AdoptionRelease))
	b.update(machine)
	if got := adoptionCondition(machine); got != "False "+adoption.ReasonNotGranted {
		t.Errorf("the condition is %q", got)
	}
	_, err := b.store.Get(t.Context(), state.KeyFor(machine.Namespace, machine.UID))
	if err != nil || !b.factsOf(machine).HasInstance() {
		t.Errorf("the state is gone: %v", err)
	}
	delete(machine.Annotations, lifecycle.AdoptionAnnotation)
	b.update(machine)
	if got := adoptionCondition(machine); got != "" {
		t.Errorf("without the request the condition is %q", got)
	}
}

func TestTheManagersPolicyAdoptsWithoutARequest(t *testing.T) {
	b := newBench(t)
	b.adopts = adoption.Adopt
	b.start(shortdir.New(t), "owner-2")
	machine := b.foreign()
	before := b.node(machine)
	b.update(machine)
	if after := b.node(machine); after.UID != before.UID || adoptionCondition(machine) != "True Adopted" {
		t.Errorf("the Node is %s, the condition %q", after.UID, adoptionCondition(machine))
	}
	redirected := b.foreign()
	redirected.Spec.ProviderID = ptr.To("")
	metav1.SetMetaDataAnnotation(&redirected.ObjectMeta, lifecycle.AdoptIDAnnotation, "/api/v1/nodes/"+redirected.Name)
	_ = b.Create(t.Context(), redirected)
	if got := adoptionCondition(redirected); got != "False "+adoption.ReasonNotGranted {
		t.Errorf("of an ID that nobody granted, the condition is %q", got)
	}
}
