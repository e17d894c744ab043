package machineset

import (
	"math/rand/v2"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

// TestTheOrderOfDeletionRefinesThatOfTheMachineAPI compares the order of random Machines with
// machine-api-operator's priorities. Marked Machines go first. Any other two go in
// machine-api-operator's order where it has one.
func TestTheOrderOfDeletionRefinesThatOfTheMachineAPI(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	mods := []machineMod{
		withNode, withError, withReason, annotated(machineapi.DeleteAnnotation, "yes"), annotated(machineapi.LegacyDeleteAnnotation, "no"),
		annotated(machineapi.DeleteAnnotation, ""), builder.DeletedAt(now), created(now.Add(-10 * day)), created(now.Add(time.Hour)),
		func(m *machinev1beta1.Machine) { m.Status.NodeRef = &corev1.ObjectReference{Name: "other"} },
	}
	for range 2000 {
		policy := []string{"", "Random", "Oldest", "Newest"}[random.IntN(4)]
		priority, err := priorityOf(policy)
		if err != nil {
			t.Fatal(err)
		}
		var machines []*machinev1beta1.Machine
		for i := range 6 {
			var some []machineMod
			for _, mod := range mods {
				if random.IntN(4) == 0 {
					some = append(some, mod)
				}
			}
			machine := builder.Machine(some...)
			machine.Name = string(rune('a' + i))
			machines = append(machines, machine)
		}
		ordered, err := selection{policy: policy, now: now, shuffle: random.Shuffle}.choose(machines, len(machines))
		if err != nil {
			t.Fatal(err)
		}
		for i := range ordered[1:] {
			first, second := ordered[i], ordered[i+1]
			if machineapi.MarkedForDeletion(second) && !machineapi.MarkedForDeletion(first) {
				t.Fatalf("policy %q: got %s before %s, which is marked", policy, first.Name, second.Name)
			}
			if machineapi.MarkedForDeletion(first) == machineapi.MarkedForDeletion(second) && priority(first, now) < priority(second, now) {
				t.Fatalf("policy %q: got %s before %s, want machine-api-operator's order", policy, first.Name, second.Name)
			}
		}
	}
}
