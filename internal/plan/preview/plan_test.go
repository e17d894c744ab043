package preview

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/engine/tofu"
	"github.com/machine-iac/machine-iac-operator/internal/plan/offline"
)

// plannerFunc is a Planner.
type plannerFunc func(m offline.Module, inputs []offline.Input) []offline.Outcome

func (f plannerFunc) Plan(_ context.Context, m offline.Module, inputs []offline.Input) []offline.Outcome {
	return f(m, inputs)
}

func TestEqualInputsArePlannedOnce(t *testing.T) {
	label := map[string]any{"machine.openshift.io/cluster-api-cluster": "demo"}
	content := strings.Join([]string{
		manifest("Machine", map[string]any{"generateName": "m-"}, label),
		manifest("Machine", map[string]any{"generateName": "m-"}, label),
		manifest("Machine", map[string]any{"generateName": "other-"}, label),
		manifest("Machine", map[string]any{"name": "m"}, label),
	}, "\n")
	requests, _ := requestsOf(t, "f", content, exampleCatalog(t))
	var planned []string
	planner := plannerFunc(func(m offline.Module, inputs []offline.Input) []offline.Outcome {
		if m.Environment["VSPHERE_PASSWORD"] == "" {
			t.Error("a provider that requires credentials in its environment would ask for them")
		}
		outcomes := make([]offline.Outcome, len(inputs))
		for n, in := range inputs {
			planned = append(planned, in.Unknown.NamePrefix)
			outcomes[n].Plan = &offline.Plan{Resources: []offline.Resource{{Address: in.Unknown.NamePrefix, Action: tofu.ActionCreate}}}
		}
		return outcomes
	})
	result, err := Plan(t.Context(), requests, planner, "")
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
	if want := (Summary{Machines: 4, Add: 4}); result.Summary != want || !result.Summary.Changes() {
		t.Errorf("the summary is %+v; want %+v", result.Summary, want)
	}
}

func TestEveryFailureIsTold(t *testing.T) {
	label := map[string]any{"machine.openshift.io/cluster-api-cluster": "demo"}
	var parts []string
	for _, name := range []string{"good", "refused", "broken"} {
		parts = append(parts, manifest("Machine", map[string]any{"name": name}, label))
	}
	requests, _ := requestsOf(t, "f.json", strings.Join(parts, "\n"), exampleCatalog(t))
	planner := plannerFunc(func(_ offline.Module, inputs []offline.Input) []offline.Outcome {
		outcomes := make([]offline.Outcome, len(inputs))
		outcomes[0].Plan = &offline.Plan{}
		outcomes[1].Err = &tofu.Error{Op: tofu.OpPlan, Class: tofu.InvalidConfiguration, Diagnostics: []tofu.Diagnostic{
			{Summary: "Invalid value", Detail: "It is too\nlarge.", File: "main.tf", Line: 7}, {Summary: "Another"},
		}}
		outcomes[2].Err = errors.New("no engine")
		return outcomes
	})
	_, err := Plan(t.Context(), requests, planner, "")
	const want = "f.json:2: document 2, Machine openshift-machine-api/refused: planning: main.tf:7 of the module example: Invalid value; It is too large.\n" +
		"f.json:2: document 2, Machine openshift-machine-api/refused: planning: Another\n" +
		"f.json:3: document 3, Machine openshift-machine-api/broken: no engine"
	if err == nil || err.Error() != want {
		t.Errorf("it ends with\n%v\nwant\n%s", err, want)
	}
}

func TestLeaves(t *testing.T) {
	object := func(pairs ...any) map[string]any {
		found := map[string]any{}
		for n := 0; n < len(pairs); n += 2 {
			found[pairs[n].(string)] = pairs[n+1]
		}
		return found
	}
	cases := map[string]struct {
		values offline.Values
		want   string
	}{
		"what is known":                       {offline.Values{After: object("a", "x", "b", 1, "c", true, "d", "")}, `a="x" b=1 c=true d=""`},
		"null and empty collections":          {offline.Values{After: object("a", nil, "b", object(), "c", []any{}), Unknown: object("b", object(), "c", []any{})}, ``},
		"what is unknown":                     {offline.Values{After: object(), Unknown: object("a", true, "b", false)}, `a=(known after apply)`},
		"what is unknown in a list":           {offline.Values{After: object("l", []any{object("a", "x")}), Unknown: object("l", []any{object("b", true), true})}, `l[0].a="x" l[0].b=(known after apply) l[1]=(known after apply)`},
		"what is unknown in what is not told": {offline.Values{After: object("a", nil), Unknown: object("a", object("b", true))}, `a.b=(known after apply)`},
		"what is sensitive":                   {offline.Values{After: object("a", "x"), Sensitive: object("a", true)}, `a=(sensitive)`},
		"what is sensitive and unknown":       {offline.Values{After: object(), Unknown: object("a", true), Sensitive: object("a", true)}, `a=(sensitive)`},
		"what is sensitive and null":          {offline.Values{After: object("a", nil), Sensitive: object("a", true)}, ``},
		"all of a map that is sensitive":      {offline.Values{After: object("a", object("b", "x")), Sensitive: object("a", true)}, `a=(sensitive)`},
		"names that are no identifiers":       {offline.Values{After: object("a", object("b.c/d", 1, "", 2, "e\"", 3))}, `a[""]=2 a["b.c/d"]=1 a["e\""]=3`},
		"all of it is unknown":                {offline.Values{Unknown: true}, `=(known after apply)`},
		"text that a browser would read":      {offline.Values{After: object("a", "<b>&\n\x1b")}, `a="<b>&\n\u001b"`},
		"text that looks like an escape":      {offline.Values{After: object("a", `\u003c`)}, `a="\\u003c"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, one := range leavesOf(tc.values) {
				got = append(got, one.path+"="+one.value.text())
			}
			if text := strings.Join(got, " "); text != tc.want {
				t.Errorf("it has\n%s\nwant\n%s", text, tc.want)
			}
		})
	}
}

func TestACheckIsToldOnce(t *testing.T) {
	content := `{"apiVersion":"machine.openshift.io/v1beta1","kind":"Machine","metadata":{"name":"m","labels":{"machine.openshift.io/cluster-api-cluster":"demo"}},` +
		`"spec":{"providerSpec":{"value":{"apiVersion":"machine.openshift.io/v1beta1","kind":"AWSMachineProviderConfig","ami":{"id":"ami-1"},` +
		`"placement":{"region":"r"},"iamInstanceProfile":{"id":"p"}}}}}`
	const noSubnet = "providerSpec.subnet: No subnet has been provided. Instances may be created in an unexpected subnet and may not join the cluster."
	requests, _ := requestsOf(t, "f", content, awsCatalog(t))
	planner := plannerFunc(func(offline.Module, []offline.Input) []offline.Outcome {
		return []offline.Outcome{{Plan: &offline.Plan{Warnings: []tofu.Diagnostic{
			{Summary: "Check block assertion failed", Detail: noSubnet}, {Summary: "Argument is deprecated", Detail: "Leave it out."},
		}}}}
	})
	result, err := Plan(t.Context(), requests, planner, "")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{noSubnet, "Argument is deprecated: Leave it out."}, result.Sets[0].Warnings); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
