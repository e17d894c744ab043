package preview_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/plan/offline"
	"github.com/machine-iac/machine-iac-operator/internal/plan/preview"
	"github.com/machine-iac/machine-iac-operator/test/planning"
)

// plannerFunc is a Planner.
type plannerFunc func(m offline.Module, inputs []offline.Input) []offline.Outcome

func (f plannerFunc) Plan(_ context.Context, m offline.Module, inputs []offline.Input) []offline.Outcome {
	return f(m, inputs)
}

func TestEqualInputsArePlannedOnce(t *testing.T) {
	content := strings.Join([]string{
		planning.Machine(t, map[string]any{"generateName": "m-"}),
		planning.Machine(t, map[string]any{"generateName": "m-"}),
		planning.Machine(t, map[string]any{"generateName": "other-"}),
		planning.Machine(t, map[string]any{"name": "m"}),
	}, "\n")
	requests := planning.Requests(t, "f", content, planning.ExampleCatalog(t))
	var planned []string
	planner := plannerFunc(func(m offline.Module, inputs []offline.Input) []offline.Outcome {
		if m.Environment["VSPHERE_PASSWORD"] == "" {
			t.Error("a provider that requires credentials in its environment would ask for them")
		}
		outcomes := make([]offline.Outcome, len(inputs))
		for n, in := range inputs {
			planned = append(planned, in.Unknown.NamePrefix)
			outcomes[n].Plan = &offline.Plan{
				Resources: []offline.Resource{{Address: in.Unknown.NamePrefix, Action: engine.ActionCreate}}}
		}
		return outcomes
	})
	result, err := preview.Plan(t.Context(), requests, planner, "")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"m-", "other-", ""}, planned); diff != "" {
		t.Errorf("planned are (-want +got):\n%s", diff)
	}
	var got []string
	for _, set := range result.Sets {
		got = append(got, set.Resources[0].Address)
	}
	if diff := cmp.Diff([]string{"m-", "m-", "other-", ""}, got); diff != "" {
		t.Errorf("each has its plan (-want +got):\n%s", diff)
	}
	if want := (preview.Summary{Machines: 4, Add: 4}); result.Summary != want || !result.Summary.Changes() {
		t.Errorf("the summary is %+v; want %+v", result.Summary, want)
	}
}

func TestEveryFailureIsReported(t *testing.T) {
	var parts []string
	for _, name := range []string{"good", "refused", "broken"} {
		parts = append(parts, planning.Machine(t, map[string]any{"name": name}))
	}
	requests := planning.Requests(t, "f.json", strings.Join(parts, "\n"), planning.ExampleCatalog(t))
	planner := plannerFunc(func(_ offline.Module, inputs []offline.Input) []offline.Outcome {
		outcomes := make([]offline.Outcome, len(inputs))
		outcomes[0].Plan = &offline.Plan{}
		outcomes[1].Err = &failure.Error{Op: failure.OpPlan, Class: failure.InvalidConfiguration,
			Diagnostics: []failure.Diagnostic{
				{Summary: "Invalid value", Detail: "It is too\nlarge.", File: "main.tf", Line: 7}, {Summary: "Another"},
			}}
		outcomes[2].Err = errors.New("no engine")
		return outcomes
	})
	_, err := preview.Plan(t.Context(), requests, planner, "")
	const want = "f.json:2: document 2, Machine openshift-machine-api/refused: planning: main.tf:7 of the module " +
		"example: Invalid value; It is too large.\n" +
		"f.json:2: document 2, Machine openshift-machine-api/refused: planning: Another\n" +
		"f.json:3: document 3, Machine openshift-machine-api/broken: no engine"
	if err == nil || err.Error() != want {
		t.Errorf("it ends with\n%v\nwant\n%s", err, want)
	}
}

func TestACheckIsReportedOnce(t *testing.T) {
	content := `{"apiVersion":"machine.openshift.io/v1beta1","kind":"Machine","metadata":{"name":"m","labels":{"machine.openshift.io/cluster-api-cluster":"demo"}},` +
		`"spec":{"providerSpec":{"value":{"apiVersion":"machine.openshift.io/v1beta1","kind":"AWSMachineProviderConfig","ami":{"id":"ami-1"},` +
		`"placement":{"region":"r"},"iamInstanceProfile":{"id":"p"}}}}}`
	const noSubnet = "providerSpec.subnet: No subnet has been provided. Instances may be created in an unexpected " +
		"subnet and may not join the cluster."
	requests := planning.Requests(t, "f", content, planning.Catalog(t, "modules/aws"))
	planner := plannerFunc(func(offline.Module, []offline.Input) []offline.Outcome {
		return []offline.Outcome{{Plan: &offline.Plan{Warnings: []failure.Diagnostic{
			{Summary: "Check block assertion failed", Detail: noSubnet},
			{Summary: "Argument is deprecated", Detail: "Leave it out."},
		}}}}
	})
	result, err := preview.Plan(t.Context(), requests, planner, "")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{noSubnet, "Argument is deprecated: Leave it out."},
		result.Sets[0].Warnings); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
