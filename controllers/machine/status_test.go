package machine

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

var now = time.Date(2026, 4, 1, 12, 0, 0, 0, time.UTC)

// modifier changes a Machine of a case.
type modifier = func(*machinev1beta1.Machine)

func withGeneration(generation int64) modifier {
	return func(m *machinev1beta1.Machine) { m.Generation = generation }
}

// withError makes the Machine Failed with a reason and a message.
func withError(message string) modifier {
	return func(m *machinev1beta1.Machine) {
		m.Status.Phase = ptr.To(machinev1beta1.PhaseFailed)
		m.Status.ErrorReason = ptr.To(machinev1beta1.InvalidConfigurationMachineError)
		m.Status.ErrorMessage = &message
	}
}

func failedAt(generation string) modifier {
	return builder.WithAnnotations(map[string]string{failedGenerationAnnotation: generation})
}

func TestSetPhaseTakesErrorsBackThatBelongToFailed(t *testing.T) {
	for _, phase := range []string{"Provisioning", "Provisioned", "Running", "Deleting"} {
		t.Run(phase, func(t *testing.T) {
			machine := builder.Machine(withError("wrong"), failedAt("3"), builder.WithAnnotations(map[string]string{"stays": ""}))
			setPhase(machine, phase)
			want := machinev1beta1.MachineStatus{Phase: &phase}
			if diff := cmp.Diff(want, machine.Status); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(map[string]string{"stays": "", failedGenerationAnnotation: "3"}, machine.Annotations); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("Failed keeps them", func(t *testing.T) {
		machine := builder.Machine(withError("wrong"), failedAt("3"))
		want := machine.DeepCopy()
		setPhase(machine, "Failed")
		if diff := cmp.Diff(want, machine); diff != "" {
			t.Error(diff)
		}
	})
}

func TestFail(t *testing.T) {
	invalid := ptr.To(machinev1beta1.InvalidConfigurationMachineError)
	wrong := fmt.Errorf("rendering: %w", actuators.InvalidConfiguration("it is wrong"))
	plain := errors.New("it is wrong")
	instance := func(m *machinev1beta1.Machine) {
		m.Status.ProviderStatus = &runtime.RawExtension{Raw: []byte(`{"instanceState":"running"}`)}
	}
	lost := &runtime.RawExtension{Raw: []byte(`{"instanceState":"Unknown"}`)}
	tcs := map[string]struct {
		mods            []modifier
		cause           error
		wantReason      *machinev1beta1.MachineStatusError
		wantAnnotations map[string]string
		wantProvider    *runtime.RawExtension
	}{
		"before anything was made, it remembers the spec": {
			mods: []modifier{withGeneration(7)}, cause: wrong, wantReason: invalid,
			wantAnnotations: map[string]string{"machine.openshift.io/instance-state": "Unknown", "machine-iac.io/failed-generation": "7"},
		},
		"an instance that was there is not made again": {
			mods: []modifier{withGeneration(7), builder.WithProviderID("fake://1"), instance}, cause: plain,
			wantAnnotations: map[string]string{"machine.openshift.io/instance-state": "Unknown"}, wantProvider: lost,
		},
		"an instance that is gone is not made again, whatever failed before it was": {
			mods: []modifier{withGeneration(8), failedAt("7"), builder.WithProviderID("fake://1")}, cause: plain,
			wantAnnotations: map[string]string{"machine.openshift.io/instance-state": "Unknown"},
		},
		"an earlier failure is overwritten": {
			mods: []modifier{withGeneration(8), failedAt("7"), withError("old")}, cause: plain,
			wantAnnotations: map[string]string{"machine.openshift.io/instance-state": "Unknown", "machine-iac.io/failed-generation": "8"},
		},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			machine := builder.Machine(tc.mods...)
			fail(machine, tc.cause)
			want := machinev1beta1.MachineStatus{
				Phase: ptr.To("Failed"), ErrorReason: tc.wantReason, ErrorMessage: ptr.To("it is wrong"), ProviderStatus: tc.wantProvider,
			}
			if diff := cmp.Diff(want, machine.Status); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tc.wantAnnotations, machine.Annotations); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSpecChanged(t *testing.T) {
	tcs := map[string]struct {
		mods []modifier
		want bool
	}{
		"the spec has changed":                    {[]modifier{failedAt("1"), withGeneration(2)}, true},
		"the spec is as it was":                   {[]modifier{failedAt("2"), withGeneration(2)}, false},
		"it failed for another cause":             {[]modifier{withGeneration(2)}, false},
		"it has an instance by now":               {[]modifier{failedAt("1"), withGeneration(2), builder.WithProviderID("fake://1")}, true},
		"a mark that names no generation lets go": {[]modifier{failedAt("any"), withGeneration(2)}, true},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			if got := specChanged(builder.Machine(tc.mods...)); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestProvisioned(t *testing.T) {
	tcs := map[string]struct {
		mods []modifier
		want bool
	}{
		"neither":             {nil, false},
		"an empty providerID": {[]modifier{builder.WithProviderID("")}, false},
		"a providerID":        {[]modifier{builder.WithProviderID("fake://1")}, true},
		"addresses":           {[]modifier{builder.WithInternalIPs("10.0.0.1")}, true},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			if got := provisioned(builder.Machine(tc.mods...)); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestWithUnknownState(t *testing.T) {
	raw := func(text string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(text)} }
	tcs := map[string]struct {
		status, want *runtime.RawExtension
	}{
		"no status":                      {nil, nil},
		"an empty one":                   {&runtime.RawExtension{}, &runtime.RawExtension{}},
		"no JSON stays as it is":         {raw("running"), raw("running")},
		"a list stays as it is":          {raw("[1]"), raw("[1]")},
		"nothing about a state":          {raw(`{"instanceId":"i-1"}`), raw(`{"instanceId":"i-1"}`)},
		"instanceState":                  {raw(`{"instanceState":"running"}`), raw(`{"instanceState":"Unknown"}`)},
		"vmState":                        {raw(`{"vmState":"Succeeded"}`), raw(`{"vmState":"Unknown"}`)},
		"a state that is null":           {raw(`{"vmState":null}`), raw(`{"vmState":"Unknown"}`)},
		"the rest is left as it is":      {raw(`{"a":12345678901234567890,"instanceState":"x","z":{"y":[1.50]}}`), raw(`{"a":12345678901234567890,"instanceState":"Unknown","z":{"y":[1.50]}}`)},
		"a state further in is not ours": {raw(`{"vm":{"vmState":"x"}}`), raw(`{"vm":{"vmState":"x"}}`)},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, withUnknownState(tc.status)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSetConditionMarksWarnings(t *testing.T) {
	machine := builder.Machine()
	setCondition(machine, instanceExists(corev1.ConditionFalse, "InstanceMissing", "gone"), now)
	setCondition(machine, upToDate(corev1.ConditionUnknown, "", ""), now)
	want := []machinev1beta1.Condition{
		{Type: "InstanceExists", Status: corev1.ConditionFalse, Severity: machinev1beta1.ConditionSeverityWarning, Reason: "InstanceMissing", Message: "gone"},
		{Type: "InstanceUpToDate", Status: corev1.ConditionUnknown},
	}
	ignoreTime := cmpopts.IgnoreFields(machinev1beta1.Condition{}, "LastTransitionTime")
	if diff := cmp.Diff(want, machine.Status.Conditions, ignoreTime); diff != "" {
		t.Error(diff)
	}
}
