package iac

import (
	"errors"
	"strings"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

func TestTyped(t *testing.T) {
	for name, tc := range map[string]struct {
		operation  runs.Operation
		err        error
		wantReason machinev1beta1.MachineStatusError
		wantText   string
	}{
		"a bad configuration ends a create":         {runs.Create, &engine.Error{Class: engine.InvalidConfiguration}, machinev1beta1.InvalidConfigurationMachineError, ""},
		"a bad configuration does not end destroy":  {runs.Destroy, &engine.Error{Class: engine.InvalidConfiguration}, machinev1beta1.DeleteMachineError, ""},
		"quota is shown as what it is":              {runs.Create, &engine.Error{Class: engine.Quota}, machinev1beta1.InsufficientResourcesMachineError, "free or raise the quota"},
		"throttling lacks resources, as quota does": {runs.Create, &engine.Error{Class: engine.Throttled}, machinev1beta1.InsufficientResourcesMachineError, "tried again later"},
		"throttling of a destroy is shown the same": {runs.Destroy, &engine.Error{Class: engine.Throttled}, machinev1beta1.InsufficientResourcesMachineError, "tried again later"},
		"credentials are retried and say the mend":  {runs.Create, &engine.Error{Class: engine.Credentials}, machinev1beta1.CreateMachineError, "check the credentials Secret"},
		"a refusal stays one":                       {runs.Update, actuators.UnsupportedChange("no"), machinev1beta1.UnsupportedChangeMachineError, "no"},
		"anything else is the operation's":          {runs.Update, errors.New("odd"), machinev1beta1.UpdateMachineError, "odd"},
		"a lock tells who holds it": {
			runs.Create, &state.LockedError{Lock: state.Lock{Owner: "somebody", Run: "r"}}, machinev1beta1.CreateMachineError, "somebody",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := typed(tc.operation, tc.err)
			if got.Reason != tc.wantReason || !strings.Contains(got.Message, tc.wantText) {
				t.Errorf("got %s %q, want %s with %q", got.Reason, got.Message, tc.wantReason, tc.wantText)
			}
		})
	}
}

func TestUndeletable(t *testing.T) {
	bad := actuators.InvalidConfiguration("spec.providerSpec.value.cpu: a number is required")
	for name, tc := range map[string]struct {
		facts      *facts
		err        error
		wantReason machinev1beta1.MachineStatusError
	}{
		"an instance that Exists vouches for is held by its configuration": {&facts{stored: true, state: stateWith(1, 0)}, bad, machinev1beta1.InvalidConfigurationMachineError},
		// A caller may take an InvalidConfiguration for leave to forget the Machine when Exists answers false.
		"half an instance is no reason to let the Machine go":      {&facts{stored: true, state: stateWith(1, 1)}, bad, machinev1beta1.DeleteMachineError},
		"nor is an instance that may have been made":               {&facts{stored: true, record: record{Intent: begun()}}, bad, machinev1beta1.DeleteMachineError},
		"nor is one whose state is gone":                           {&facts{provisioned: true}, bad, machinev1beta1.DeleteMachineError},
		"nor is one that is missing, as a disk of it may be there": {&facts{stored: true, state: stateWith(1, 0), record: record{Check: &check{Verdict: verdictMissing}}}, bad, machinev1beta1.DeleteMachineError},
		"what a Secret can mend stays what it is":                  {&facts{provisioned: true}, actuators.DeleteFailed("spec.providerSpec.value.cpu: no Secret"), machinev1beta1.DeleteMachineError},
	} {
		t.Run(name, func(t *testing.T) {
			got := typed(runs.Destroy, undeletable(tc.facts, tc.err))
			if got.Reason != tc.wantReason || !strings.Contains(got.Message, "spec.providerSpec.value.cpu") {
				t.Errorf("got %s %q, want %s with the field", got.Reason, got.Message, tc.wantReason)
			}
		})
	}
}

func TestRefusalOf(t *testing.T) {
	plan := func(action engine.Action, reason string) *engine.Report {
		return &engine.Report{Changes: []engine.Change{{Address: "thing.this", Ref: engine.Ref{Name: "this"}, Action: action, Reason: reason}}}
	}
	for name, tc := range map[string]struct {
		operation   runs.Operation
		report      *engine.Report
		provisioned bool
		wantRefused bool
	}{
		"an update in place passes":                               {runs.Update, plan(engine.ActionUpdate, ""), true, false},
		"a replacement on update is refused":                      {runs.Update, plan(engine.ActionReplace, "cannot_update"), true, true},
		"a destroy on update is refused":                          {runs.Update, plan(engine.ActionDelete, ""), true, true},
		"a forget on update is refused":                           {runs.Update, plan(engine.ActionForget, ""), true, true},
		"a half made instance may be made anew":                   {runs.Create, plan(engine.ActionReplace, "tainted"), false, false},
		"a half made instance that was shown is not replaced":     {runs.Create, plan(engine.ActionReplace, "tainted"), true, true},
		"a create that would replace for other reasons is refuse": {runs.Create, plan(engine.ActionReplace, "cannot_update"), false, true},
		"a create passes":                                         {runs.Create, plan(engine.ActionCreate, ""), false, false},
		"a tainted instance is not replaced by an update":         {runs.Update, plan(engine.ActionReplace, "tainted"), false, true},
		"an update makes no instance":                             {runs.Update, plan(engine.ActionCreate, ""), true, true},
	} {
		t.Run(name, func(t *testing.T) {
			got := refusalOf(tc.operation, tc.report, tc.provisioned)
			if (got != "") != tc.wantRefused {
				t.Fatalf("refusal %q, want one: %t", got, tc.wantRefused)
			}
			if tc.wantRefused && !strings.Contains(got, "thing.this") {
				t.Errorf("the refusal %q does not name what", got)
			}
		})
	}
}

func TestJudge(t *testing.T) {
	for name, tc := range map[string]struct {
		report *engine.Report
		want   verdict
	}{
		"no difference is none": {&engine.Report{}, verdictNone},
		"a vanished instance is missing": {
			&engine.Report{
				Drift:   []engine.Change{{Address: "thing.this", Ref: engine.Ref{Name: "this"}, Action: engine.ActionDelete}},
				Changes: []engine.Change{{Address: "thing.this", Action: engine.ActionCreate}},
			}, verdictMissing,
		},
		"a change of the instance is one": {
			&engine.Report{Changes: []engine.Change{{Address: "thing.this", Action: engine.ActionUpdate}}}, verdictChanged,
		},
		"something beside the instance that vanished is a change": {
			&engine.Report{
				Drift:   []engine.Change{{Address: "thing.disk", Action: engine.ActionDelete}},
				Changes: []engine.Change{{Address: "thing.disk", Action: engine.ActionCreate}},
			}, verdictChanged,
		},
		"data that is read is no change": {
			&engine.Report{Changes: []engine.Change{{Address: "data.thing.image", Action: engine.ActionRead}}}, verdictNone,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := judge(tc.report); got.Verdict != tc.want {
				t.Errorf("verdict %s (%s), want %s", got.Verdict, got.Summary, tc.want)
			}
		})
	}
}

func TestBrokenConditions(t *testing.T) {
	broken := engine.Diagnostic{Summary: "Resource precondition failed", Detail: "Only tags change.", Context: `resource "a" "this"`}
	after := engine.Diagnostic{Summary: "Resource postcondition failed", Detail: "Nor this.", Context: `resource "b" "c"`}
	ofData := engine.Diagnostic{Summary: "Resource postcondition failed", Detail: "No such image.", Context: `data "a" "image"`}
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"nothing is wrong":                          {nil, ""},
		"something else than the engine":            {errors.New("odd"), ""},
		"an engine that says nothing":               {&engine.Error{}, ""},
		"the module's words, of every condition":    {&engine.Error{Diagnostics: []engine.Diagnostic{broken, after}}, "Only tags change. Nor this."},
		"what is read is no matter of the change":   {&engine.Error{Diagnostics: []engine.Diagnostic{broken, ofData}}, ""},
		"another error may mend itself, so it wins": {&engine.Error{Diagnostics: []engine.Diagnostic{broken, {Summary: "EOF"}}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := brokenConditions(tc.err); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
