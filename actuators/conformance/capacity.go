package conformance

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/actuators"
)

// testCapacity asks as for a MachineSet's template: the Machine has a providerSpec and nothing
// else.
func (h Harness) testCapacity(t *testing.T) {
	estimator, ok := h.Actuator.(actuators.CapacityEstimator)
	if !ok {
		t.Skip("the actuator does not implement CapacityEstimator")
	}
	template := &machinev1beta1.Machine{Spec: h.NewMachine(t).Spec}
	before := template.DeepCopy()
	started := time.Now()
	capacity, err := estimator.Capacity(t.Context(), template)
	if took := time.Since(started); took > verbBudget {
		t.Errorf("Capacity took %s; it must return at once", took)
	}
	if err != nil {
		t.Errorf("Capacity: %v", err)
	}
	if capacity != nil && (capacity.CPU <= 0 || capacity.MemoryMiB <= 0 || capacity.GPU < 0 ||
		capacity.Architecture == "") {
		t.Errorf("Capacity returns %+v, want a size or nothing", *capacity)
	}
	if diff := cmp.Diff(before, template); diff != "" {
		t.Errorf("Capacity changed the Machine:\n%s", diff)
	}
	template.Spec.ProviderSpec.Value = h.WrongType
	if _, err := estimator.Capacity(t.Context(), template); !actuators.IsInvalidConfiguration(err) ||
		!contains(err.Error(), h.Field) {
		t.Errorf("Capacity of a field of the wrong type: %v, want an InvalidConfiguration that names %s", err, h.Field)
	}
}
