package iac

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
)

func TestAStackWithoutAdoptRefusesAnAdoption(t *testing.T) {
	b := newBench(t)
	b.uses = v1alpha1.EnginePulumi
	machine := b.foreign()
	before := b.node(machine)
	for _, asked := range []lifecycle.Adoption{lifecycle.AdoptionPlan, lifecycle.AdoptionAdopt} {
		b.ask(machine, asked)
		if _, uncertain := actuators.AsUncertain(b.Update(t.Context(), machine)); !uncertain {
			t.Errorf("%s: the update does not say that the instance is not adopted", asked)
		}
		found := readProviderStatus(machine).Adoption
		if got := adoptionCondition(machine); got != "False Refused" || found == nil || !strings.Contains(found.Refused, "the stack kubemark does not support adoption: it has no adopt/ folder") {
			t.Fatalf("%s: the condition is %q, the adoption %+v", asked, got, found)
		}
	}
	first := readProviderStatus(machine).Adoption.PlannedAt
	b.clock.SetTime(b.clock.Now().Add(time.Hour))
	_ = b.Update(t.Context(), machine) // as above
	if again := readProviderStatus(machine).Adoption.PlannedAt; !again.Equal(&first) {
		t.Errorf("the refusal is written again without a request: %s, then %s", first, again)
	}
	metav1.SetMetaDataAnnotation(&machine.ObjectMeta, lifecycle.AdoptionRequestedAnnotation, b.clock.Now().UTC().Format(time.RFC3339))
	_ = b.Update(t.Context(), machine) // as above
	if again := readProviderStatus(machine).Adoption.PlannedAt; !first.Before(&again) {
		t.Errorf("the refusal of a new request is of %s; want one after %s", again, first)
	}
	if f := b.factsOf(machine); f.Stored || f.Witness != nil {
		t.Errorf("something was recorded: %+v", f)
	}
	if after := b.node(machine); after.UID != before.UID || after.ResourceVersion != before.ResourceVersion {
		t.Error("the Node was touched")
	}
	delete(machine.Annotations, lifecycle.AdoptionAnnotation)
	_ = b.Update(t.Context(), machine) // as above
	if got := adoptionCondition(machine); got != "False NotRequested" || readProviderStatus(machine).Adoption != nil {
		t.Errorf("without a request the condition is %q, the adoption %+v", got, readProviderStatus(machine).Adoption)
	}
}

func TestAnAdoptionIsRefusedWhereTheProviderSpecIs(t *testing.T) {
	b := newBench(t)
	machine := b.foreign()
	right := machine.Spec.ProviderSpec.Value
	machine.Spec.ProviderSpec.Value = b.machine(func(spec map[string]any) { spec["cpu"] = "four" }).Spec.ProviderSpec.Value
	b.ask(machine, lifecycle.AdoptionPlan)
	_ = b.Update(t.Context(), machine) // the status says why
	found := readProviderStatus(machine).Adoption
	if got := adoptionCondition(machine); got != "False Refused" || found == nil || !strings.Contains(found.Refused, "planning is impossible: ") || !strings.Contains(found.Refused, "cpu") {
		t.Fatalf("the condition is %q, the adoption %+v", got, found)
	}
	machine.Spec.ProviderSpec.Value = right
	if plan := b.planned(machine); plan.Refused != "" || len(plan.Imports) == 0 {
		t.Errorf("with the right providerSpec the plan is %+v", plan)
	}
}

func TestTheEventOfAnAdoptionReportsWhetherItChangesTheInstance(t *testing.T) {
	b := newBench(t)
	machine := b.foreign() // its Node lacks the labels that the module writes
	b.ask(machine, lifecycle.AdoptionAdopt)
	b.update(machine)
	if sent := b.sent("Adopted the instance"); len(sent) != 1 || !strings.HasSuffix(sent[0], "imported it into the state and changed it in place") {
		t.Errorf("the events are %v; want one that says that the Node was changed", sent)
	}
}
