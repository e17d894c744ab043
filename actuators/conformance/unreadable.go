package conformance

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/machine-iac/machine-iac-operator/actuators"
)

// unreadable are providerSpecs that nothing can be made of.
func (h Harness) unreadable() map[string]*runtime.RawExtension {
	return map[string]*runtime.RawExtension{
		"a field of the wrong type":  h.WrongType,
		"no providerSpec":            nil,
		"an empty one":               {},
		"a list":                     {Raw: []byte(`[]`)},
		"text that is no JSON":       {Raw: []byte(`{"cpu":`)},
		"an unknown kind":            {Raw: []byte(`{"apiVersion":"example.com/v1","kind":"Nothing","cpu":"four"}`)},
		"a kind of the wrong type":   {Raw: []byte(`{"apiVersion":1,"kind":[]}`)},
		"Secrets of the wrong type":  {Raw: []byte(`{"credentialsSecret":[],"userDataSecret":7}`)},
		"a Secret that is not there": {Raw: []byte(`{"credentialsSecret":{"name":"not-there"}}`)},
	}
}

func (h Harness) testUnreadable(t *testing.T) {
	for name, providerSpec := range h.unreadable() {
		t.Run(name, func(t *testing.T) {
			machine := h.NewMachine(t)
			machine.Spec.ProviderSpec.Value = providerSpec
			if h.exists(t, machine) {
				t.Error("Exists returns true for a Machine that nothing was made for")
			}
			if err := h.Actuator.Delete(t.Context(), machine); err != nil {
				t.Errorf("Delete of nothing: %v", err)
			}
			// The Machine controller asks once more before it lets the Machine go.
			if h.exists(t, machine) {
				t.Error("Exists returns true after Delete")
			}
		})
	}
}

func (h Harness) testUnreadableLater(t *testing.T) {
	machine := h.NewMachine(t)
	h.bring(t, machine)
	good := machine.Spec.ProviderSpec.Value
	machine.Spec.ProviderSpec.Value = h.WrongType
	if !h.exists(t, machine) {
		t.Error("Exists returns false, although the instance is there")
	}
	deadline := time.Now().Add(h.Patience)
	for {
		err := h.Actuator.Delete(t.Context(), machine)
		if _, busy := actuators.AsRequeueAfter(err); !busy {
			// It may manage, or it may say what is wrong.
			if left := h.Instances(t, machine); err == nil && left > 0 {
				t.Errorf("Delete returns nil, and leaves %d instances", left)
			} else if err != nil && !contains(err.Error(), h.Field) {
				t.Errorf("Delete: %v; want an error that names %s", err, h.Field)
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("not deleted within %s, last error: %v", h.Patience, err)
		}
		h.pause()
	}
	machine.Spec.ProviderSpec.Value = good
	if err := h.remove(t, machine); err != nil {
		t.Errorf("Delete with the providerSpec fixed: %v", err)
	}
	if left := h.Instances(t, machine); left > 0 {
		t.Errorf("%d instances are left", left)
	}
}
