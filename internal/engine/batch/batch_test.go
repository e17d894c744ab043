package batch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/modules"
)

func read(t *testing.T, text string) (*Module, error) {
	t.Helper()
	return NewModule(fstest.MapFS{"main.tf": {Data: []byte(text)}, "lookup/import.tf": {Data: []byte("import {}")}})
}

func TestEveryModuleCanBeCalled(t *testing.T) {
	entries, err := fs.ReadDir(modules.FS, ".")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		files, err := fs.Sub(modules.FS, entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := NewModule(files); err != nil {
			t.Errorf("%s: %v", entry.Name(), err)
		}
	}
}

func TestWhatCannotBeCalled(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"an import":                       {`import { to = a.b }`, "main.tf:1: only root modules can have a block import"},
		"another module":                  {`module "a" { source = "./a" }`, "a block module"},
		"a removed resource":              {`removed { from = a.b }`, "a block removed"},
		"settings of a root module":       {"terraform {\n  encryption {}\n}", "encryption"},
		"a provider with an alias":        {`provider "a" { alias = "b" }`, "alias"},
		"several of a provider":           {`provider "a" { for_each = {} }`, "for_each"},
		"a provider of a local":           {`provider "a" { region = local.region }`, "refers to local"},
		"a provider of what is read":      {"provider \"a\" {\n  inner {\n    region = data.a.b.region\n  }\n}", "refers to data"},
		"an output of one run":            {"output \"a\" {\n  value = 1\n  ephemeral = true\n}", "ephemeral"},
		"the folder of the root module":   {`locals { a = "${path.root}/a" }`, "path"},
		"the name of a CLI workspace":     {`locals { a = terraform.workspace }`, "terraform"},
		"the same in a nested block":      {"resource \"a\" \"b\" {\n  c {\n    d = [for e in [1] : tofu.workspace]\n  }\n}", "main.tf:3: a reference to tofu"},
		"what is no HCL":                  {`locals {`, "main.tf"},
		"the folder of the module itself": {`locals { a = file("${path.module}/a") }`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(t, tc.text)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

const called = `terraform {
  required_version = ">= 1.8.0"
}
variable "machine" { type = object({ name = string }) }
provider "a" {
  region = var.provider_spec.placement.region
  tags   = var.provider_spec.tags["x"]
}
variable "provider_spec" { type = any }
output "id" { value = 1 }
`

func TestTheProvidersOfTheRootModuleServeEveryMachine(t *testing.T) {
	m, err := read(t, called)
	if err != nil {
		t.Fatal(err)
	}
	if left := string(m.Files()["main.tf"]); strings.Contains(left, "provider \"a\"") || !strings.Contains(left, `output "id"`) || !strings.Contains(left, `variable "provider_spec"`) {
		t.Errorf("the module that is called is\n%s\nwant it without its provider, and with all else", left)
	}
	root := string(m.Root(Apart(2)))
	for _, want := range []string{
		`required_version`, `region = var.provider_spec.placement.region`, `variable "provider_spec" { type = any }`, "module \"call1\" {", `for_each = toset(["m1"])`,
		"  machine = var.machine_iac_values[each.key].machine\n  provider_spec = ", `output "m1"`,
	} {
		if !strings.Contains(root, want) {
			t.Errorf("the root module lacks %q:\n%s", want, root)
		}
	}
	if many := string(m.Root(Apart(51))); !strings.Contains(many, `for_each = toset(["m48", "m49", "m50"])`) || strings.Count(many, "module \"") != 17 {
		t.Errorf("want 17 calls of three Machines each:\n%s", many)
	}
	if strings.Contains(root, `output "id"`) {
		t.Errorf("the root module has an output of the module:\n%s", root)
	}
}

func TestMachinesHaveInCommonWhatProvidersAreMadeOf(t *testing.T) {
	m, err := read(t, called)
	if err != nil {
		t.Fatal(err)
	}
	common := func(variables string) string {
		t.Helper()
		got, err := m.Common([]byte(variables))
		if err != nil {
			t.Fatal(err)
		}
		return string(got)
	}
	one := common(`{"machine":{"name":"a"},"provider_spec":{"placement":{"region":"r","zone":"a"},"tags":{"x":"1"},"size":1}}`)
	if other := common(`{"machine":{"name":"b"},"provider_spec":{"placement":{"region":"r","zone":"b"},"tags":{"x":"1"},"size":2}}`); one != other {
		t.Errorf("Machines that differ in what no provider is made of have %s and %s in common", one, other)
	}
	for name, variables := range map[string]string{
		"another region":             `{"machine":{},"provider_spec":{"placement":{"region":"s"},"tags":{"x":"1"}}}`,
		"no region":                  `{"machine":{},"provider_spec":{"tags":{"x":"1"}}}`,
		"what an index may lead to":  `{"machine":{},"provider_spec":{"placement":{"region":"r"},"tags":{"x":"1","y":"2"}}}`,
		"a variable that one lacks":  `{"provider_spec":{"placement":{"region":"r"},"tags":{"x":"1"}}}`,
		"one that the others do not": `{"cluster":null,"machine":{},"provider_spec":{"placement":{"region":"r"},"tags":{"x":"1"}}}`,
	} {
		if other := common(variables); one == other {
			t.Errorf("%s: it is the same, %s", name, one)
		}
	}
	for _, variables := range []string{`[]`, `{"provider_spec":{"placement":"secret"}}`} {
		if _, err := m.Common([]byte(variables)); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want an error without the value", variables, err)
		}
	}
}

func TestVariablesOfTheRootModule(t *testing.T) {
	m, err := read(t, called)
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.Variables([][]byte{[]byte(`{"machine":{"name":"a"},"provider_spec":1}`), []byte(`{"machine":{"name":"b"},"provider_spec":2}`)})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"machine":{"name":"a"},"machine_iac_values":{"m0":{"machine":{"name":"a"},"provider_spec":1},"m1":{"machine":{"name":"b"},"provider_spec":2}},"provider_spec":1}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
	if _, err := m.Variables([][]byte{[]byte(`{"machine":{}}`)}); err == nil {
		t.Error("a variable that is missing was taken for null")
	}
}

func TestStatesBecomeOne(t *testing.T) {
	one := `{"version":4,"terraform_version":"1.9.1","serial":7,"lineage":"x","outputs":{"id":{"value":"a","type":"string"},"n":{"value":[1],"type":["list","number"],"sensitive":true}},
		"resources":[{"mode":"managed","type":"t","name":"this","provider":"p","instances":[{"index_key":0,"attributes":{"a":1},"dependencies":["data.t.x","t.y"]}]}],"check_results":[]}`
	other := `{"version":4,"terraform_version":"1.10.0","serial":1,"lineage":"y","outputs":{},"resources":[{"mode":"data","type":"t","name":"x","instances":[{"attributes":{}}]}]}`
	raw, err := Apart(2).State([][]byte{[]byte(one), []byte(other)})
	if err != nil {
		t.Fatal(err)
	}
	var got, want any
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(`{"version":4,"terraform_version":"1.10.0","serial":1,"lineage":"batch","outputs":{
		"m0":{"value":{"id":"a","n":[1]},"type":["object",{"id":"string","n":["list","number"]}],"sensitive":true},"m1":{"value":{},"type":["object",{}],"sensitive":true}},
		"resources":[
		{"module":"module.call0[\"m0\"]","mode":"managed","type":"t","name":"this","provider":"p",
			"instances":[{"index_key":0,"attributes":{"a":1},"dependencies":["module.call0.data.t.x","module.call0.t.y"]}]},
		{"module":"module.call1[\"m1\"]","mode":"data","type":"t","name":"x","instances":[{"attributes":{}}]}]}`), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for name, bad := range map[string]string{
		"no JSON":                      `secret`,
		"another version":              `{"version":3,"terraform_version":"1.9.1"}`,
		"no version of an engine":      `{"version":4}`,
		"a resource of a child module": `{"version":4,"terraform_version":"1.9.1","resources":[{"module":"module.secret","instances":[]}]}`,
		"instances of no form":         `{"version":4,"terraform_version":"1.9.1","resources":[{"instances":"secret"}]}`,
		"dependencies of no form":      `{"version":4,"terraform_version":"1.9.1","resources":[{"instances":[{"dependencies":"secret"}]}]}`,
	} {
		if _, err := Apart(2).State([][]byte{[]byte(one), []byte(bad)}); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want an error without what the state has", name, err)
		}
	}
}

func TestAStateIsSplitIntoThoseOfItsMachines(t *testing.T) {
	one := `{"version":4,"terraform_version":"1.10.0","serial":7,"lineage":"x","outputs":{"id":{"value":"a","type":"string"},"key":{"value":[1],"type":["list","number"],"sensitive":true}},
		"resources":[{"mode":"managed","type":"t","name":"this","provider":"p","instances":[{"index_key":0,"attributes":{"a":1.50},"dependencies":["data.t.x","t.y"]}]}]}`
	other := `{"version":4,"terraform_version":"1.10.0","serial":1,"lineage":"y","outputs":{},"resources":[{"mode":"data","type":"t","name":"x","instances":[{"attributes":{}}]}]}`
	m, err := read(t, "output \"id\" { value = 1 }\noutput \"key\" {\n  value = 1\n  sensitive = true\n}\noutput \"no\" {\n  value = 1\n  sensitive = false\n}\n")
	if err != nil {
		t.Fatal(err)
	}
	stored := [][]byte{[]byte(one), nil, []byte(other)}
	parts, err := m.Parts([]Part{{Run: "a"}, {Run: "b", Lineage: "new"}, {Run: "c"}}, stored)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := Apart(3).State(stored)
	if err != nil {
		t.Fatal(err)
	}
	split, err := parts.Split(whole)
	if err != nil {
		t.Fatal(err)
	}
	empty := `{"version":4,"terraform_version":"1.10.0","serial":1,"lineage":"new","outputs":{},"resources":[]}`
	for n, want := range []string{strings.Replace(one, `"serial":7`, `"serial":8`, 1), empty, strings.Replace(other, `"serial":1`, `"serial":2`, 1)} {
		var compact bytes.Buffer
		if err := json.Compact(&compact, []byte(want)); err != nil {
			t.Fatal(err)
		}
		var got, wanted any
		if json.Unmarshal(split[n], &got) != nil || json.Unmarshal(compact.Bytes(), &wanted) != nil {
			t.Fatalf("%s is no state", split[n])
		}
		if diff := cmp.Diff(wanted, got); diff != "" {
			t.Errorf("Machine %d (-want +got):\n%s", n, diff)
		}
	}
	if !strings.Contains(string(split[0]), "1.50") {
		t.Errorf("a number was written anew: %s", split[0])
	}
	changed := bytes.Replace(bytes.Replace(whole, []byte(`"serial":1`), []byte(`"serial":2`), 1), []byte("1.50"), []byte("1.75"), 1)
	next, err := parts.Split(changed)
	if err != nil {
		t.Fatal(err)
	}
	if Unchanged(split[0], next[0]) || !Unchanged(split[1], next[1]) || !Unchanged(split[2], next[2]) || Unchanged(nil, next[1]) || bytes.Equal(split[2], next[2]) {
		t.Errorf("want the first Machine's state changed, and the serials of all:\n%s", bytes.Join(next, []byte("\n")))
	}
	for name, bad := range map[string]string{
		"no JSON":                       `secret`,
		"a resource of the root module": `{"version":4,"resources":[{"type":"secret","instances":[]}]}`,
		"a resource of another Machine": `{"version":4,"resources":[{"module":"module.call3[\"m3\"]","instances":[]}]}`,
		"outputs of another form":       `{"version":4,"outputs":{"m0":{"value":"secret","type":"string"}}}`,
		"a dependency of another form":  `{"version":4,"resources":[{"module":"module.call0[\"m0\"]","instances":[{"dependencies":"secret"}]}]}`,
		"a state of a version to come":  `{"version":5}`,
	} {
		if _, err := parts.Split([]byte(bad)); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want an error without what the state has", name, err)
		}
	}
}

func TestAMachineIsCompleteWithItsMarker(t *testing.T) {
	const marker = `{"mode":"managed","type":"terraform_data","name":%q,"instances":[{%s"attributes":{"input":` +
		`{"value":{"id":"a","key":"s"},"type":["object",{"id":"string","key":"string"}]}}}]}`
	parts := &Parts{Sensitive: []string{"key"}, Machines: []Part{{Run: "a"}, {Run: "b"}, {Run: "c"}}}
	raw := fmt.Sprintf(`{"version":4,"resources":[`+marker+`,`+marker+`,`+marker+
		`,{"mode":"data","type":"terraform_remote_state","name":"pause0","instances":[]}]}`,
		"m0", "", "m1", `"status":"tainted",`, "begun", "")
	split, complete, err := parts.SplitComplete([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]bool{true, false, false}, complete); diff != "" {
		t.Errorf("complete (-want +got):\n%s", diff)
	}
	outputs := `"outputs":{"id":{"value":"a","type":"string"},"key":{"value":"s","type":"string","sensitive":true}}`
	for n, want := range []string{outputs, `"outputs":{}`, `"outputs":{}`} {
		if got := string(split[n]); !strings.Contains(got, want) || !strings.Contains(got, `"resources":[]`) {
			t.Errorf("Machine %d has %s, want %s and no resource", n, got, want)
		}
	}
}

func TestWhatIsSaidOfAMachineIsSaidAsTheModuleAloneSaysIt(t *testing.T) {
	about := Apart(11).address(10) + ".t.this"
	report := &engine.Report{
		Applied: []engine.Applied{{Ref: engine.Ref{Module: Apart(11).address(10), Name: "this"}, Address: about, Action: engine.ActionCreate}, {Address: Apart(11).address(1) + ".t.this"}},
		Diagnostics: []failure.Diagnostic{
			{Severity: failure.SeverityError, Address: about, Summary: "no " + about, Detail: "with " + about, File: "machine/main.tf"},
			{Severity: failure.SeverityError, Summary: "of nobody"},
		},
	}
	part := Apart(11).PartOf(report, 10)
	if len(part.Applied) != 1 || part.Applied[0].Address != "t.this" || !part.Applied[0].Instance() {
		t.Errorf("applied: %+v", part.Applied)
	}
	want := []failure.Diagnostic{{Severity: failure.SeverityError, Address: "t.this", Summary: "no t.this", Detail: "with t.this", File: "main.tf"}}
	if diff := cmp.Diff(want, part.Diagnostics); diff != "" {
		t.Error(diff)
	}
	event, n, ok := Apart(11).EventOf(engine.Event{Ref: engine.Ref{Module: Apart(11).address(10), Name: "this"}, Address: about})
	if !ok || n != 10 || event.Address != "t.this" || !event.Instance() {
		t.Errorf("event %+v of %d", event, n)
	}
	if _, _, ok := Apart(11).EventOf(engine.Event{Address: "t.this"}); ok {
		t.Error("an event of the root module was taken for one of a Machine")
	}
	if text, n, ok := Apart(11).TextOf("12:00 " + about + ": Creating..."); !ok || n != 10 || text != "12:00 t.this: Creating..." {
		t.Errorf("%q of %d", text, n)
	}
	if text, _, ok := Apart(11).TextOf("Apply complete!"); ok || text != "Apply complete!" {
		t.Errorf("%q was taken for one of a Machine", text)
	}
}

func TestOnlyMachinesOfWhichNothingIsSaidAreClean(t *testing.T) {
	in := func(n int, action engine.Action) engine.Change {
		return engine.Change{Ref: engine.Ref{Module: Apart(12).address(n), Name: "this"}, Address: Apart(12).address(n) + ".t.this", Action: action}
	}
	plan := func(change func(*engine.Report)) *engine.Report {
		r := &engine.Report{Planned: engine.Summary{Operation: engine.OperationPlan}, Outputs: map[string]engine.Output{}}
		for n := range 12 {
			r.Outputs[nameOf(n)] = engine.Output{Sensitive: true, Action: engine.ActionNoOp}
		}
		change(r)
		return r
	}
	for name, tc := range map[string]struct {
		change func(*engine.Report)
		// unclean are the Machines that are not clean; nil where nothing is known of any.
		unclean []int
	}{
		"nothing is said":              {func(*engine.Report) {}, []int{}},
		"a resource that stays":        {func(r *engine.Report) { r.Changes = []engine.Change{in(1, engine.ActionNoOp)} }, []int{}},
		"a resource that would change": {func(r *engine.Report) { r.Changes, r.Planned.Change = []engine.Change{in(1, engine.ActionUpdate)}, 1 }, []int{1}},
		"one of another of like name":  {func(r *engine.Report) { r.Changes, r.Planned.Change = []engine.Change{in(11, engine.ActionUpdate)}, 1 }, []int{11}},
		"what the module ignores":      {func(r *engine.Report) { r.Drift = []engine.Change{in(0, engine.ActionUpdate)} }, []int{}},
		"a resource that is gone":      {func(r *engine.Report) { r.Drift = []engine.Change{in(0, engine.ActionDelete)} }, []int{0}},
		"an output that would change":  {func(r *engine.Report) { r.Outputs["m2"] = engine.Output{Action: engine.ActionUpdate} }, []int{2}},
		"a warning": {func(r *engine.Report) {
			r.Diagnostics = []failure.Diagnostic{{Severity: "warning", Address: Apart(12).address(3) + ".check.a"}}
		}, []int{3}},
		"a warning of no Machine":        {func(r *engine.Report) { r.Diagnostics = []failure.Diagnostic{{Severity: "warning"}} }, nil},
		"an output of no Machine":        {func(r *engine.Report) { r.Outputs["m12"] = engine.Output{Action: engine.ActionNoOp} }, nil},
		"an output that is not reported": {func(r *engine.Report) { delete(r.Outputs, "m4") }, nil},
		"a change of no Machine": {func(r *engine.Report) {
			r.Changes, r.Planned.Add = []engine.Change{{Address: "t.this", Action: engine.ActionCreate}}, 1
		}, nil},
		"a change that is not counted": {func(r *engine.Report) { r.Changes = []engine.Change{in(1, engine.ActionUpdate)} }, nil},
		"a change that is not listed":  {func(r *engine.Report) { r.Planned.Add = 1 }, nil},
		"no plan":                      {func(r *engine.Report) { r.Planned = engine.Summary{} }, nil},
		"a message of an unknown type": {func(r *engine.Report) { r.Unknown = 1 }, nil},
		"text":                         {func(r *engine.Report) { r.Text = "panic" }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			clean := Apart(12).Clean(plan(tc.change))
			if clean == nil != (tc.unclean == nil) {
				t.Fatalf("got %v, want something that is known: %t", clean, tc.unclean != nil)
			}
			var unclean []int
			for n, one := range clean {
				if !one {
					unclean = append(unclean, n)
				}
			}
			if diff := cmp.Diff(tc.unclean, unclean, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("unclean (-want +got):\n%s", diff)
			}
		})
	}
}
