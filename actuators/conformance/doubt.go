package conformance

import (
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/actuators"
)

// testForeign has a Machine whose instance somebody else has made.
func (h Harness) testForeign(t *testing.T) {
	if h.Lose == nil {
		t.Skip("the harness has no Lose function")
	}
	machine := h.NewMachine(t)
	id := "foreign://1"
	machine.Spec.ProviderID = &id
	h.expectDoubt(t, machine)
	h.expectHeld(t, machine)
	if got := h.Instances(t, machine); got != 0 {
		t.Errorf("%d instances, want none: the actuator may not know of an existing one", got)
	}
}

// testLost loses what is known of an instance, and puts it back.
func (h Harness) testLost(t *testing.T) {
	if h.Lose == nil {
		t.Skip("the harness has no Lose function")
	}
	machine := h.NewMachine(t)
	h.bring(t, machine)
	restore := h.Lose(t, machine)
	h.expectDoubt(t, machine)
	restore()
	h.until(t, "the instance is known again", func() error {
		if h.exists(t, machine) {
			return nil
		}
		return actuators.InProgress(0, "Exists returns false")
	})
	if err := h.remove(t, machine); err != nil {
		t.Errorf("Delete: %v", err)
	}
	if got := h.Instances(t, machine); got != 0 {
		t.Errorf("%d instances are left", got)
	}
}

// expectDoubt wants an UncertainError of Exists: false would make the Machine Failed, or let it go.
func (h Harness) expectDoubt(t *testing.T, machine *machinev1beta1.Machine) {
	t.Helper()
	exists, err := h.Actuator.Exists(t.Context(), machine)
	uncertain, ok := actuators.AsUncertain(err)
	if !ok {
		t.Fatalf("Exists returns %t, %v; want an UncertainError", exists, err)
	}
	if uncertain.Reason == "" || uncertain.Message == "" {
		t.Errorf("the doubt has the reason %q and the message %q; want both", uncertain.Reason, uncertain.Message)
	}
}

// expectHeld wants Delete to come to no end, and to say in the end that it cannot.
func (h Harness) expectHeld(t *testing.T, machine *machinev1beta1.Machine) {
	t.Helper()
	deadline := time.Now().Add(h.Patience)
	for {
		err := h.Actuator.Delete(t.Context(), machine)
		if _, ok := actuators.AsUncertain(err); ok {
			return
		}
		if _, busy := actuators.AsRequeueAfter(err); !busy {
			t.Fatalf("Delete returns %v; want an UncertainError", err)
		}
		if time.Now().After(deadline) {
			t.Fatalf("no UncertainError within %s; Delete returns %v", h.Patience, err)
		}
		h.pause()
	}
}
