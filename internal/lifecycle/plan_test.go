package lifecycle

import (
	"errors"
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

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
		"a half-made instance is not replaced by the engine":      {runs.Create, plan(engine.ActionReplace, "tainted"), false, true},
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

func TestCompareInstance(t *testing.T) {
	for name, tc := range map[string]struct {
		report *engine.Report
		want   record.DriftResult
	}{
		"no difference is none": {&engine.Report{}, record.DriftNone},
		"a vanished instance is missing": {
			&engine.Report{
				Drift:   []engine.Change{{Address: "thing.this", Ref: engine.Ref{Name: "this"}, Action: engine.ActionDelete}},
				Changes: []engine.Change{{Address: "thing.this", Action: engine.ActionCreate}},
			}, record.DriftMissing,
		},
		"a change of the instance is one": {
			&engine.Report{Changes: []engine.Change{{Address: "thing.this", Action: engine.ActionUpdate}}}, record.DriftChanged,
		},
		"something beside the instance that vanished is a change": {
			&engine.Report{
				Drift:   []engine.Change{{Address: "thing.disk", Action: engine.ActionDelete}},
				Changes: []engine.Change{{Address: "thing.disk", Action: engine.ActionCreate}},
			}, record.DriftChanged,
		},
		"data that is read is no change": {
			&engine.Report{Changes: []engine.Change{{Address: "data.thing.image", Action: engine.ActionRead}}}, record.DriftNone,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := CompareInstance(tc.report, nil); got.Result != tc.want {
				t.Errorf("result %s (%s), want %s", got.Result, got.Summary, tc.want)
			}
		})
	}
}

func TestBrokenConditions(t *testing.T) {
	broken := failure.Diagnostic{Summary: "Resource precondition failed", Detail: "Only tags change.", Context: `resource "a" "this"`}
	after := failure.Diagnostic{Summary: "Resource postcondition failed", Detail: "Nor this.", Context: `resource "b" "c"`}
	ofData := failure.Diagnostic{Summary: "Resource postcondition failed", Detail: "No such image.", Context: `data "a" "image"`}
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"nothing is wrong":                             {nil, ""},
		"something else than the engine":               {errors.New("odd"), ""},
		"an engine that says nothing":                  {&failure.Error{}, ""},
		"the module's words, of every condition":       {&failure.Error{Diagnostics: []failure.Diagnostic{broken, after}}, "the change cannot be made in place: Only tags change. Nor this."},
		"what is read is no matter of the change":      {&failure.Error{Diagnostics: []failure.Diagnostic{broken, ofData}}, ""},
		"another error may pass by itself, so it wins": {&failure.Error{Diagnostics: []failure.Diagnostic{broken, {Summary: "EOF"}}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := RefusedByModule(tc.err); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestDriftNamesTheAttributesThatDiffer(t *testing.T) {
	report := &engine.Report{Changes: []engine.Change{
		{Address: "thing.this", Action: engine.ActionUpdate}, {Address: "thing.disk", Action: engine.ActionReplace}, {Address: "thing.port", Action: engine.ActionCreate},
	}}
	got := CompareInstance(report, map[string][]string{"thing.this": {"size", "tags"}, "thing.disk": {"type"}}).Summary
	want := "the instance has drifted; to repair it, thing.this would change in size, tags; thing.disk would be replaced in type; thing.port would be created"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
