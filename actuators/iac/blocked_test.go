package iac

import (
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/client-go/tools/events"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/actuators/reporting"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

func TestWhatAMissingSecretBlocks(t *testing.T) {
	abandoned := record.Record{Intent: &record.Intent{Operation: runs.Create, Abandoned: "lost"}}
	for name, tc := range map[string]struct {
		asked    runs.Operation
		decision lifecycle.Decision
		record   record.Record
		want     machinev1beta1.MachineStatusError // "" if the verb goes on
	}{
		"a create":                      {runs.Create, lifecycle.Decision{Action: lifecycle.ActionStart}, record.Record{}, machinev1beta1.InvalidConfigurationMachineError},
		"no create in progress":         {runs.Create, lifecycle.Decision{Action: lifecycle.ActionInProgress}, record.Record{}, ""},
		"no create in progress (lost)":  {runs.Create, lifecycle.Decision{Action: lifecycle.ActionInProgress}, abandoned, ""},
		"an update":                     {runs.Update, lifecycle.Decision{Action: lifecycle.ActionStart}, record.Record{}, machinev1beta1.InvalidConfigurationMachineError},
		"an update in progress":         {runs.Update, lifecycle.Decision{Action: lifecycle.ActionInProgress}, record.Record{}, machinev1beta1.InvalidConfigurationMachineError},
		"a destroy of a lost instance":  {runs.Destroy, lifecycle.Decision{Action: lifecycle.ActionStart}, abandoned, machinev1beta1.DeleteMachineError},
		"no destroy without resources":  {runs.Destroy, lifecycle.Decision{Action: lifecycle.ActionStart}, record.Record{}, ""},
		"no destroy in progress":        {runs.Destroy, lifecycle.Decision{Action: lifecycle.ActionInProgress}, abandoned, ""},
		"no destroy that is done":       {runs.Destroy, lifecycle.Decision{Action: lifecycle.ActionDone}, abandoned, ""},
		"no foreign instance":           {runs.Destroy, lifecycle.Decision{Action: lifecycle.ActionForeign}, abandoned, ""},
		"no release of the instance":    {runs.Destroy, lifecycle.Decision{Action: lifecycle.ActionStart, Release: true}, abandoned, ""},
		"a create that waits to retry":  {runs.Create, lifecycle.Decision{Action: lifecycle.ActionRequeueAfter}, record.Record{}, machinev1beta1.InvalidConfigurationMachineError},
		"a create with nothing to do":   {runs.Create, lifecycle.Decision{Action: lifecycle.ActionDone}, record.Record{}, machinev1beta1.InvalidConfigurationMachineError},
		"a look for an existing update": {runs.Update, lifecycle.Decision{Action: lifecycle.ActionLook}, record.Record{}, machinev1beta1.InvalidConfigurationMachineError},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := events.NewFakeRecorder(5)
			machine := builder.Machine()
			machine.Spec.ProviderSpec.Value = builder.ProviderSpec(map[string]any{"apiVersion": "example.io/v1", "kind": "Example"})
			a := &Actuator{recorder: recorder, metrics: reporting.NewMetrics()}
			o := &observation{
				machine: machine, asked: tc.asked, facts: &lifecycle.Facts{Record: tc.record},
				choiceErr: actuators.InvalidConfiguration("Secret credentials does not exist"),
			}
			err := a.blocked(o, tc.decision)
			if tc.want == "" && err != nil || tc.want != "" && !isReason(err, tc.want) {
				t.Errorf("got %v, want the reason %q", err, tc.want)
			}
			if sent := len(recorder.Events) > 0; sent != (tc.want != "") {
				t.Errorf("got an event: %t, want %t", sent, tc.want != "")
			}
			if o.choiceErr = nil; a.blocked(o, tc.decision) != nil {
				t.Error("got an error although the Secret exists")
			}
		})
	}
}
