package machine

import (
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/actuators/fake"
	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

// An edit that comes while the instance is made, and that it cannot take, would else keep its
// Machine from ever being Running.
func TestARefusedChangeKeepsNoMachineFromItsPhase(t *testing.T) {
	for name, tc := range map[string]struct {
		node *corev1.ObjectReference
		err  error
		want string
	}{
		"with a Node it is Running":                {&corev1.ObjectReference{Name: "node"}, actuators.UnsupportedChange("no"), machinev1beta1.PhaseRunning},
		"without one it is Provisioned":            {nil, actuators.UnsupportedChange("no"), machinev1beta1.PhaseProvisioned},
		"another failure leaves it where it is":    {nil, actuators.UpdateFailed("no"), machinev1beta1.PhaseProvisioning},
		"a run under way leaves it where it is":    {nil, actuators.InProgress(1, "a run"), machinev1beta1.PhaseProvisioning},
		"so does uncertainty whether there is one": {nil, actuators.Uncertain(1, "Lost", "no"), machinev1beta1.PhaseProvisioning},
		"and without an error it goes on as well":  {&corev1.ObjectReference{Name: "node"}, nil, machinev1beta1.PhaseRunning},
	} {
		t.Run(name, func(t *testing.T) {
			machine := builder.Machine(builder.WithProviderID("id"))
			machine.Status.Phase, machine.Status.NodeRef = ptr.To(machinev1beta1.PhaseProvisioning), tc.node
			actuator := &fake.Actuator{}
			if err := actuator.Create(t.Context(), machine); err != nil {
				t.Fatal(err)
			}
			if tc.err != nil {
				actuator.Fail(fake.Update, tc.err)
			}
			u := &updateInstance{actuator: actuator, clock: clock.RealClock{}}
			if _, err := u.Reconcile(t.Context(), &scope{machine: machine, original: machine.DeepCopy(), exists: true}); err != nil {
				t.Fatal(err)
			}
			if got := machineapi.Phase(machine); got != tc.want {
				t.Errorf("phase %s, want %s", got, tc.want)
			}
		})
	}
}

// TestTheGenerationIsNotedOnceItsResultIsStored: annotations are written before the status, so the
// result of an earlier generation could be taken for this one's.
func TestTheGenerationIsNotedOnceItsResultIsStored(t *testing.T) {
	for name, tc := range map[string]struct {
		moving bool
		stored corev1.ConditionStatus
		err    error
		want   string
	}{
		"the result is stored":                    {true, corev1.ConditionTrue, nil, "7"},
		"a refusal is not yet":                    {true, corev1.ConditionTrue, actuators.UnsupportedChange("no"), ""},
		"a refusal is":                            {true, corev1.ConditionFalse, actuators.UnsupportedChange("no"), "7"},
		"there is no result":                      {true, corev1.ConditionTrue, actuators.InProgress(1, "a run"), ""},
		"the Machine does not change for a fleet": {false, corev1.ConditionTrue, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			machine := builder.Machine(builder.WithProviderID("id"))
			machine.Generation = 7
			if tc.moving {
				machine.Annotations = map[string]string{v1beta1.MovedFromAnnotation: "workers-1"}
			}
			reason := ""
			if tc.stored == corev1.ConditionFalse {
				reason = string(machinev1beta1.UnsupportedChangeMachineError)
			}
			setCondition(machine, upToDate(tc.stored, reason, ""), time.Now())
			actuator := &fake.Actuator{}
			if err := actuator.Create(t.Context(), machine); err != nil {
				t.Fatal(err)
			}
			if tc.err != nil {
				actuator.Fail(fake.Update, tc.err)
			}
			u := &updateInstance{actuator: actuator, clock: clock.RealClock{}}
			if _, err := u.Reconcile(t.Context(), &scope{machine: machine, original: machine.DeepCopy(), exists: true}); err != nil {
				t.Fatal(err)
			}
			if got := machine.Annotations[v1beta1.CheckedGenerationAnnotation]; got != tc.want {
				t.Errorf("noted generation %q, want %q", got, tc.want)
			}
		})
	}
}
