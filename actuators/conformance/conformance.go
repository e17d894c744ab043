// Package conformance tests an actuator against the contract with the Machine controller.
package conformance

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/machine-iac/machine-iac-operator/actuators"
)

// Harness is an actuator with its infrastructure.
type Harness struct {
	Actuator actuators.Actuator
	// NewMachine returns a valid Machine without an instance. Its UID is set.
	NewMachine func(t *testing.T) *machinev1beta1.Machine
	// Instances counts a Machine's instances in the infrastructure.
	Instances func(t *testing.T, machine *machinev1beta1.Machine) int
	// Vanish removes the instance behind the actuator's back.
	Vanish func(t *testing.T, machine *machinev1beta1.Machine)
	// Lose hides the actuator's record of a Machine's instance, which stays, and returns a function
	// to restore it. It is nil for an actuator that is not tested this way, nor with foreign
	// instances.
	Lose func(t *testing.T, machine *machinev1beta1.Machine) (restore func())
	// WrongType is a providerSpec with a field of the wrong type; the error names Field.
	WrongType *runtime.RawExtension
	Field     string
	// Patience bounds one operation. Verbs are called again after a five-hundredth of it.
	Patience time.Duration
}

// verbBudget bounds a verb, which promises to return at once. It is generous, because test machines
// are busy.
const verbBudget = 10 * time.Second

// Run runs the suite.
func Run(t *testing.T, h Harness) {
	t.Run("a Machine without an instance does not exist and is deleted at once", h.testNothing)
	t.Run("an instance is made once, published, and removed", h.testLife)
	t.Run("a providerSpec that cannot be served names the field and makes nothing", h.testInvalid)
	t.Run("a Machine that is deleted while its instance is made leaves nothing", h.testDeleteDuringCreate)
	t.Run("an instance that vanishes is noticed and its Machine can be deleted", h.testVanish)
	t.Run("a Machine with an unreadable providerSpec and no instance can be deleted", h.testUnreadable)
	t.Run("an instance survives a providerSpec that cannot be understood", h.testUnreadableLater)
	t.Run("an instance that somebody else made is neither missing nor let go", h.testForeign)
	t.Run("an instance without its state is not missing", h.testLost)
	t.Run("the size of an instance is known without one", h.testCapacity)
	t.Run("ten Machines at once have one instance each", h.testMany)
}

func (h Harness) testNothing(t *testing.T) {
	machine := h.NewMachine(t)
	if h.exists(t, machine) {
		t.Error("Exists returns true for a Machine that nothing was made for")
	}
	if err := h.remove(t, machine); err != nil {
		t.Errorf("Delete of nothing: %v", err)
	}
}

func (h Harness) testLife(t *testing.T) {
	machine := h.NewMachine(t)
	h.bring(t, machine)
	published(t, machine)
	settled := machine.DeepCopy()
	h.until(t, "a second Update", func() error { return h.Actuator.Update(t.Context(), machine) })
	if diff := cmp.Diff(settled, machine); diff != "" {
		t.Errorf("a second Update changed the Machine:\n%s", diff)
	}
	if err := h.Actuator.Create(t.Context(), machine); err != nil {
		if _, busy := actuators.AsRequeueAfter(err); !busy {
			t.Errorf("Create of what exists: %v", err)
		}
	}
	if got := h.Instances(t, machine); got != 1 {
		t.Errorf("%d instances, want 1", got)
	}
	if err := h.remove(t, machine); err != nil {
		t.Fatalf("Delete: %v", err)
	}
	if got := h.Instances(t, machine); got != 0 {
		t.Errorf("%d instances after Delete, want 0", got)
	}
	if err := h.remove(t, machine); err != nil {
		t.Errorf("a second Delete: %v", err)
	}
}

func (h Harness) testInvalid(t *testing.T) {
	machine := h.NewMachine(t)
	machine.Spec.ProviderSpec.Value = h.WrongType
	err := h.Actuator.Create(t.Context(), machine)
	if !actuators.IsInvalidConfiguration(err) {
		t.Fatalf("Create returns %v, want an InvalidConfiguration", err)
	}
	if !contains(err.Error(), h.Field) {
		t.Errorf("the error %q does not name the field %s", err, h.Field)
	}
	if got := h.Instances(t, machine); got != 0 {
		t.Errorf("%d instances, want none", got)
	}
	if err := h.remove(t, machine); err != nil {
		t.Errorf("Delete of what was never made: %v", err)
	}
}

func (h Harness) testDeleteDuringCreate(t *testing.T) {
	machine := h.NewMachine(t)
	if err := h.Actuator.Create(t.Context(), machine); err != nil {
		if _, busy := actuators.AsRequeueAfter(err); !busy {
			t.Fatalf("Create: %v", err)
		}
	}
	if err := h.remove(t, machine); err != nil {
		t.Fatalf("Delete: %v", err)
	}
	if got := h.Instances(t, machine); got != 0 {
		t.Errorf("%d instances, want none", got)
	}
}

func (h Harness) testVanish(t *testing.T) {
	machine := h.NewMachine(t)
	h.bring(t, machine)
	h.Vanish(t, machine)
	deadline := time.Now().Add(h.Patience)
	for h.exists(t, machine) {
		if time.Now().After(deadline) {
			t.Fatalf("Exists still returns true %s after the instance vanished", h.Patience)
		}
		if err := h.Actuator.Update(t.Context(), machine); err != nil {
			t.Logf("Update while the instance is gone: %v", err)
		}
		h.pause()
	}
	if err := h.remove(t, machine); err != nil {
		t.Errorf("Delete after the instance vanished: %v", err)
	}
}

func (h Harness) testMany(t *testing.T) {
	var machines []*machinev1beta1.Machine
	for range 10 {
		machine := h.NewMachine(t)
		machines = append(machines, machine)
		if err := h.Actuator.Create(t.Context(), machine); err != nil {
			if _, busy := actuators.AsRequeueAfter(err); !busy {
				t.Fatalf("Create: %v", err)
			}
		}
	}
	for _, machine := range machines {
		h.bring(t, machine)
		if got := h.Instances(t, machine); got != 1 {
			t.Errorf("Machine %s: %d instances, want 1", machine.Name, got)
		}
	}
	for _, machine := range machines {
		if err := h.remove(t, machine); err != nil {
			t.Errorf("Delete of %s: %v", machine.Name, err)
		}
	}
}

// bring does what the Machine controller does until the instance exists and is settled.
func (h Harness) bring(t *testing.T, machine *machinev1beta1.Machine) {
	t.Helper()
	h.until(t, "the instance exists", func() error {
		if h.exists(t, machine) {
			return nil
		}
		if err := h.timed(t, "Create",
			func(ctx context.Context) error { return h.Actuator.Create(ctx, machine) }); err != nil {
			return err
		}
		return actuators.InProgress(0, "created; Exists is asked again")
	})
	h.until(t, "the instance is settled", func() error {
		return h.timed(t, "Update", func(ctx context.Context) error { return h.Actuator.Update(ctx, machine) })
	})
}

// remove does what the Machine controller does until the instance is gone.
func (h Harness) remove(t *testing.T, machine *machinev1beta1.Machine) error {
	t.Helper()
	deadline := time.Now().Add(h.Patience)
	for {
		err := h.timed(t, "Delete", func(ctx context.Context) error { return h.Actuator.Delete(ctx, machine) })
		if _, busy := actuators.AsRequeueAfter(err); err != nil && !busy && !actuators.IsInvalidConfiguration(err) {
			return err
		} else if !busy && !h.exists(t, machine) {
			return nil
		}
		if time.Now().After(deadline) {
			t.Fatalf("not deleted within %s, last error: %v", h.Patience, err)
		}
		h.pause()
	}
}

func (h Harness) exists(t *testing.T, machine *machinev1beta1.Machine) bool {
	t.Helper()
	var exists bool
	err := h.timed(t, "Exists", func(ctx context.Context) (err error) {
		exists, err = h.Actuator.Exists(ctx, machine)
		return err
	})
	if err != nil {
		t.Fatalf("Exists: %v", err)
	}
	return exists
}

// timed calls a verb and fails the test when it blocks.
func (h Harness) timed(t *testing.T, verb string, call func(ctx context.Context) error) error {
	t.Helper()
	started := time.Now()
	err := call(t.Context())
	if took := time.Since(started); took > verbBudget {
		t.Errorf("%s took %s; a verb starts or continues work and returns at once", verb, took)
	}
	return err
}

// pause waits before a verb is called again, which costs a real actuator more than waiting.
func (h Harness) pause() { time.Sleep(h.Patience / 500) }

func (h Harness) until(t *testing.T, what string, done func() error) {
	t.Helper()
	deadline := time.Now().Add(h.Patience)
	for {
		err := done()
		if err == nil {
			return
		}
		if _, busy := actuators.AsRequeueAfter(err); !busy {
			t.Fatalf("waiting until %s: %v", what, err)
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s; last error: %v", h.Patience, what, err)
		}
		h.pause()
	}
}
