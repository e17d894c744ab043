package machine

import (
	"strings"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/client-go/tools/events"

	"github.com/machine-iac/machine-iac-operator/test/builder"
)

func TestValidation(t *testing.T) {
	noLabel := func(m *machinev1beta1.Machine) { delete(m.Labels, builder.ClusterLabel) }
	noProviderSpec := func(m *machinev1beta1.Machine) { m.Spec.ProviderSpec.Value = nil }
	emptyLabel := builder.WithLabels(map[string]string{builder.ClusterLabel: ""})
	const labelFault = "metadata.labels: machine.openshift.io/cluster-api-cluster is missing or empty; set it to"
	const specFault = "spec.providerSpec.value is missing; set it to describe"
	tcs := map[string]struct {
		mods       []modifier
		wantFaults []string
	}{
		"as it should be":    {nil, nil},
		"no label":           {[]modifier{noLabel}, []string{labelFault}},
		"an empty label":     {[]modifier{emptyLabel}, []string{labelFault}},
		"no providerSpec":    {[]modifier{noProviderSpec}, []string{specFault}},
		"all faults at once": {[]modifier{noLabel, noProviderSpec}, []string{labelFault, specFault}},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			recorder := events.NewFakeRecorder(10)
			proceed, err := (&validateSpec{recorder: recorder, clock: clockAt(now)}).Reconcile(t.Context(), &scope{machine: builder.Machine(tc.mods...)})
			if proceed != (tc.wantFaults == nil) || (err == nil) != proceed {
				t.Fatalf("got %v, %v; want faults: %q", proceed, err, tc.wantFaults)
			}
			if err == nil {
				if len(recorder.Events) != 0 {
					t.Errorf("got an event about nothing: %s", <-recorder.Events)
				}
				return
			}
			event := <-recorder.Events
			if !strings.HasPrefix(event, "Warning FailedValidate ") {
				t.Errorf("got event %q", event)
			}
			for _, problem := range tc.wantFaults {
				if !strings.Contains(err.Error(), problem) || !strings.Contains(event, problem) {
					t.Errorf("got error %q and event %q, want both to say %q", err, event, problem)
				}
			}
		})
	}
}
