package iac

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/client-go/tools/events"

	"github.com/machine-iac/machine-iac-operator/internal/desired"
	"github.com/machine-iac/machine-iac-operator/internal/render"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

func TestWarningsAreEventsOfACreateAndOfAnUpdate(t *testing.T) {
	wanted := &desired.State{Inputs: &render.Inputs{Warnings: []render.Warning{
		{Path: "spec.providerSpec.value.x", Message: "unknown field, ignored", Unknown: true},
		{Path: "spec.providerSpec.value.subnet", Message: "providerSpec.subnet: none", Advice: true},
	}}}
	both := []string{"Warning IgnoredField spec.providerSpec.value.x: unknown field, ignored", "Warning DoubtfulField providerSpec.subnet: none"}
	for operation, want := range map[runs.Operation][]string{runs.Create: both, runs.Update: both, runs.Drift: nil, runs.Destroy: nil} {
		t.Run(string(operation), func(t *testing.T) {
			recorder := events.NewFakeRecorder(5)
			(&Actuator{recorder: recorder}).warn(&machinev1beta1.Machine{}, wanted, operation)
			close(recorder.Events)
			var got []string
			for event := range recorder.Events {
				got = append(got, event)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
