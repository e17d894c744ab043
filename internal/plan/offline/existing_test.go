package offline

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
)

// existing is a module without providers, whose fixed values cannot be changed.
const existing = `
variable "machine" { type = object({ name = string, uid = string, cluster_id = string }) }
variable "provider_spec" {
  type = object({ size = number, fixed = string })
}
variable "user_data" { type = string }
resource "terraform_data" "this" {
  input            = { size = var.provider_spec.size, uid = var.machine.uid }
  triggers_replace = var.provider_spec.size > 100
}
resource "terraform_data" "made_with" {
  input      = var.provider_spec.fixed
  depends_on = [terraform_data.this]
  lifecycle {
    ignore_changes = [input]
    postcondition {
      condition     = self.output == var.provider_spec.fixed
      error_message = "What is fixed cannot be changed."
    }
  }
}
output "size" { value = terraform_data.this.output.size }
`

// stateOf returns the state of an instance of that module.
func stateOf(t *testing.T, uid string) []byte {
	t.Helper()
	inputType := `["object",{"size":"number","uid":"string"}]`
	input := fmt.Sprintf(`{"size":1,"uid":%q}`, uid)
	raw, err := json.Marshal(map[string]any{
		"version": 4, "terraform_version": "1.12.0", "serial": 3, "lineage": "l",
		"outputs": map[string]any{"size": map[string]any{"value": 1, "type": "number"}},
		"resources": []any{
			map[string]any{"mode": "managed", "type": "terraform_data", "name": "this",
				"provider": `provider["terraform.io/builtin/terraform"]`, "instances": []any{map[string]any{
					"schema_version": 0,
					"attributes": json.RawMessage(`{"id":"i","input":{"type":` + inputType + `,"value":` + input +
						`},"output":{"type":` + inputType + `,"value":` + input +
						`},"triggers_replace":{"type":"bool","value":false}}`),
				}}},
			map[string]any{"mode": "managed", "type": "terraform_data", "name": "made_with",
				"provider": `provider["terraform.io/builtin/terraform"]`, "instances": []any{map[string]any{
					"schema_version": 0, "dependencies": []string{"terraform_data.this"},
					"attributes": json.RawMessage(
						`{"id":"m","input":{"type":"string","value":"a"},"output":{"type":"string","value":"a"},"triggers_replace":null}`),
				}}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// changeOf returns an input that changes an instance.
func changeOf(t *testing.T, uid string, size int, fixed string) Input {
	t.Helper()
	raw, err := json.Marshal(map[string]any{
		"machine":       map[string]any{"name": "n", "uid": uid, "cluster_id": "c"},
		"provider_spec": map[string]any{"size": size, "fixed": fixed}, "user_data": "",
	})
	if err != nil {
		t.Fatal(err)
	}
	return Input{Variables: raw, Existing: &Existing{State: stateOf(t, uid)}}
}

// message summarises an outcome.
func message(outcome Outcome) string {
	if outcome.Err != nil {
		return outcome.Err.Error()
	}
	var parts []string
	for _, one := range outcome.Plan.Resources {
		parts = append(parts, string(one.Action)+" "+one.Address)
	}
	slices.Sort(parts)
	return strings.Join(append(parts, outcome.Plan.Broken...), ", ")
}

func TestChangesOfWhatExistsArePlannedTogether(t *testing.T) {
	planner := newPlanner(t, nil)
	m := Module{Files: filesOf(map[string]string{"main.tf": existing})}
	inputs := []Input{
		changeOf(t, "u0", 1, "a"), changeOf(t, "u1", 2, "a"), changeOf(t, "u2", 1, "b"), changeOf(t, "u3", 200, "a"),
		{Variables: changeOf(t, "u4", 1, "a").Variables},
		{Variables: changeOf(t, "u5", 1, "a").Variables,
			Existing: &Existing{State: []byte(`{"version":3,"secret":"t0p-secret"}`)}},
	}
	want := []string{
		"", "update terraform_data.this", "What is fixed cannot be changed.", "replace terraform_data.this",
		"create terraform_data.made_with, create terraform_data.this",
		"reading the state: its version is 3; 4 is needed",
	}
	outcomes := planner.Plan(t.Context(), m, inputs)
	var got []string
	for _, outcome := range outcomes {
		got = append(got, message(outcome))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the plans (-want +got):\n%s", diff)
	}
	changed := outcomes[1].Plan
	if before, after := changed.Resources[0].Values.Before, changed.Resources[0].Values.After; fmt.Sprint(
		before) == fmt.Sprint(after) {
		t.Errorf("before and after are %v", before)
	}
	wantChanges := []engine.Change{{Ref: engine.Ref{Name: "this"}, Address: "terraform_data.this",
		Type: "terraform_data", Action: engine.ActionUpdate}}
	if diff := cmp.Diff(wantChanges, changed.Report.Changes); diff != "" || !changed.Report.InPlaceOnly() {
		t.Errorf("what the engine says of the second (-want +got):\n%s", diff)
	}
	if !outcomes[0].Plan.Report.NoChange() || len(outcomes[3].Plan.Report.Destroys()) != 1 {
		t.Errorf("what the engine says of the others is mixed up: %+v, %+v", outcomes[0].Plan.Report,
			outcomes[3].Plan.Report)
	}
}

func TestMovedStates(t *testing.T) {
	s := &source{configured: map[string]bool{"aws": true}}
	raw := `{"version":4,"resources":[
		{"mode":"managed","type":"aws_instance","name":"this","provider":"provider[\"registry.opentofu.org/hashicorp/aws\"].west","instances":[
			{"attributes":{"n":12345678901234567890},"dependencies":["data.aws_ami.a","module.inner.x.y"]}]},
		{"module":"module.inner","mode":"managed","type":"x","name":"y","each":"list","provider":"provider[\"registry.opentofu.org/other/x\"]","instances":[{"index_key":0,"deposed":"d"}]}]}`
	merged, err := s.mergedState([]Input{{Existing: &Existing{State: []byte(raw)}},
		{Existing: &Existing{State: []byte(raw)}}}, "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"module":"module.machine0","mode":"managed","type":"aws_instance"`, `"module":"module.machine1.module.inner"`,
		`"provider":"module.machine1.provider[\"registry.opentofu.org/hashicorp/aws\"].west"`,
		`"provider":"provider[\"registry.opentofu.org/other/x\"]"`,
		`"dependencies":["module.machine1.data.aws_ami.a","module.machine1.module.inner.x.y"]`, `12345678901234567890`,
		`"each":"list"`, `"deposed":"d"`,
		`"terraform_version":"1.2.3"`,
	} {
		if !strings.Contains(string(merged), want) {
			t.Errorf("it lacks %s:\n%s", want, merged)
		}
	}
}

func TestBatches(t *testing.T) {
	state := func(data string) *Existing {
		return &Existing{
			State: []byte(
				`{"version":4,"resources":[{"mode":"data","type":"t","name":"n","instances":[{"attributes":{"id":"` +
					data + `"}}]}]}`)}
	}
	inputs := []Input{
		{}, {Existing: state("a")}, {Existing: state("b")}, {}, {Existing: state("a")},
		{Existing: &Existing{State: state("a").State, Refresh: true}},
		{Existing: &Existing{State: state("a").State, Refresh: true, Files: map[string]string{"CLOUDS": "one"}}},
		{Existing: &Existing{State: state("a").State, Refresh: true, Files: map[string]string{"CLOUDS": "other"}}},
	}
	if diff := cmp.Diff([][]int{{0, 3}, {1, 4}, {2}, {5}, {6}, {7}}, batchesOf(inputs, 1)); diff != "" {
		t.Errorf("with one engine (-want +got):\n%s", diff)
	}
	if got := batchesOf(make([]Input, 100), 2); len(got) != 4 || len(got[0]) != maxCalls {
		t.Errorf("a hundred are planned as %v", got)
	}
}
