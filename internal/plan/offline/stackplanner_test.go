package offline

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/engine/pulumi"
	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
	"github.com/machine-iac/machine-iac-operator/test/long"
)

// newStackPlanner returns a planner with a real CLI, bridge and providers. It cleans up after itself.
func newStackPlanner(t testing.TB) *StackPlanner {
	t.Helper()
	bin, err := filepath.Abs(filepath.Join("..", "..", "..", "bin"))
	if err != nil {
		t.Fatal(err)
	}
	binary, err := pulumi.Find(t.Context(), filepath.Join(bin, "pulumi"))
	if err != nil {
		t.Fatalf("%v; run 'make tools'", err)
	}
	confined, err := sandbox.New(sandbox.Options{Mode: sandbox.Preferred})
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewStackPlanner(t.Context(), StackOptions{
		Binary: binary, Plugins: filepath.Join(bin, "pulumi-plugins"), ProviderMirror: filepath.Join(bin, "mirror"),
		Parallel: 2, Sandbox: confined,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(p.scratch); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("its folder is left: %v", err)
		}
	})
	return p
}

// kubectlPackage returns a stack's only package, with all resources of the provider.
func kubectlPackage() *fstest.MapFile {
	value := base64.StdEncoding.EncodeToString(
		[]byte(`{"remote":{"url":"registry.opentofu.org/gavinbunney/kubectl","version":"1.19.0"}}`))
	return &fstest.MapFile{Data: []byte("packageDeclarationVersion: 1\nname: terraform-provider\nversion: 3.128.0\n" +
		"parameterization:\n  name: kubectl\n  version: 1.19.0\n  value: " + value + "\n")}
}

// stackOf returns a stack with the rest of a program.
func stackOf(rest string) Module {
	const head = "name: example\nruntime: yaml\nconfig:\n  machine: {type: object}\n  provider_spec: {type: " +
		"object}\n  user_data: {type: string, secret: true}\n"
	return Module{Files: fstest.MapFS{
		"Pulumi.yaml": &fstest.MapFile{Data: []byte(head + rest)}, "sdks/kubectl/kubectl-1.19.0.yaml": kubectlPackage(),
	}}
}

// planStack plans a stack and fails without a plan.
func planStack(t *testing.T, p *StackPlanner, m Module, in Input) *Plan {
	t.Helper()
	outcome := p.Plan(t.Context(), m, []Input{in})[0]
	if outcome.Err != nil {
		t.Fatalf("%v: %+v", outcome.Err, stackDiagnosticsOf(outcome.Err))
	}
	return outcome.Plan
}

// knownIn returns the values of a plan with "unknown" and "sensitive" in place of hidden ones.
func knownIn(values Values) map[string]any {
	known := map[string]any{}
	after, _ := values.After.(map[string]any)
	for name, value := range after {
		switch {
		case AnyMarked(member(values.Sensitive, name)):
			known[name] = "sensitive"
		case AnyMarked(member(values.Unknown, name)):
			known[name] = "unknown"
		case value != nil:
			known[name] = value
		}
	}
	return known
}

func member(value any, name string) any {
	object, _ := value.(map[string]any)
	return object[name]
}

// outputsStack outputs its variables.
const outputsStack = `
resources:
  this:
    type: kubectl:Manifest
    properties:
      yamlBody: "kind: Node"
      validateSchema: false
outputs:
  name: ${machine.name}
  uid: node://${machine.uid}
  encoded: {"fn::toBase64": "${machine.uid}"}
  cluster: ${machine.cluster_id}
  labels: ${machine.labels}
  team: ${provider_spec.team}
  size: ${provider_spec.size}
  user_data: ${user_data}
  made: ${this.uid}
`

func TestWhatAStackOnlyKnowsAfterwardsIsUnknown(t *testing.T) {
	long.Test(t)
	p := newStackPlanner(t)
	variables := []byte(
		`{"machine":{"name":"n","uid":"u","cluster_id":"c","labels":{"${machine.name}":"${provider_spec.team}"}},` +
			`"provider_spec":{"team":"${machine.name}","size":3},"user_data":"t0p-secret"}`)
	data := map[string]any{"${machine.name}": "${provider_spec.team}"}
	cases := map[string]struct {
		unknown Unknown
		want    map[string]any
	}{
		"a Machine of a MachineSet is not there yet, and what is data stays data": {
			unknown: Unknown{Name: true, UID: true, ClusterID: true, UserData: true},
			want: map[string]any{
				"name": "unknown", "uid": "unknown", "encoded": "unknown", "cluster": "unknown", "labels": data,
				"team": "${machine.name}",
				"size": json.Number("3"), "user_data": "sensitive", "made": "unknown",
			},
		},
		"what is given is known, but for what the provider makes of it": {
			want: map[string]any{
				"name": "n", "uid": "node://u", "encoded": "dQ==", "cluster": "c", "labels": data,
				"team": "${machine.name}",
				"size": json.Number("3"), "user_data": "sensitive", "made": "unknown",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plan := planStack(t, p, stackOf(outputsStack), Input{Variables: variables, Unknown: tc.unknown})
			if diff := cmp.Diff(tc.want, knownIn(plan.Outputs)); diff != "" {
				t.Errorf("the outputs (-want +got):\n%s", diff)
			}
			if len(plan.Resources) != 1 || plan.Resources[0].Address != "kubectl:index/manifest:Manifest.this" ||
				plan.Resources[0].Action != engine.ActionCreate {
				t.Fatalf("the resources are %+v", plan.Resources)
			}
			want := map[string]any{
				"apiVersion": "unknown", "kind": "unknown", "liveManifestIncluster": "sensitive", "liveUid": "unknown",
				"manifestId": "unknown", "name": "unknown",
				"namespace": "unknown", "uid": "unknown", "validateSchema": false, "yamlBody": "sensitive",
				"yamlBodyParsed": "unknown", "yamlIncluster": "sensitive",
			}
			if diff := cmp.Diff(want, knownIn(plan.Resources[0].Values)); diff != "" {
				t.Errorf("the values of the resource, without what nobody has said anything of (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatAStackReadsIsReadByAnApply(t *testing.T) {
	p := newStackPlanner(t)
	plan := planStack(t, p, stackOf(`
variables:
  version:
    fn::invoke:
      function: kubectl:getServerVersion
      return: gitVersion
resources:
  found:
    type: kubectl:Manifest
    get:
      id: v1//Node//${machine.name}//
  this:
    type: kubectl:Manifest
    properties:
      yamlBody: "kind: ${version}"
outputs:
  version: ${version}
  found: ${found.uid}
  major:
    fn::select:
      - 0
      - fn::split: [".", {"fn::kubectl:getServerVersion": {}}]
`), Input{Variables: []byte(`{"machine":{"name":"n"},"provider_spec":{},"user_data":""}`)})
	wantReads := []string{"kubectl:getServerVersion.major", "kubectl:getServerVersion.version",
		"kubectl:Manifest.found"}
	slices.Sort(wantReads)
	if diff := cmp.Diff(wantReads, plan.Reads); diff != "" {
		t.Errorf("what is read (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"version": "unknown", "found": "unknown", "major": "unknown"},
		knownIn(plan.Outputs)); diff != "" {
		t.Errorf("the outputs (-want +got):\n%s", diff)
	}
	if len(plan.Resources) != 1 {
		t.Errorf("what would be made: %+v", plan.Resources)
	}
}

func TestLocalsOfWhichSomeIsUnknown(t *testing.T) {
	long.Test(t)
	p := newStackPlanner(t)
	m := stackOf(`
resources:
  this: {type: "kubectl:Manifest", properties: {yamlBody: "kind: Node"}}
outputs:
  known: ${locals.known}
  id: ${locals.id}
  first: ${locals.list[0].type}
  second: ${locals.list[0].address}
  odd: ${locals.odd}
  none: ${locals.none}
  list: ${locals.list}
  own: [{a: "${this.uid}"}, "${machine.name}", [], {b: {"fn::toBase64": "x"}}]
`)
	m.Locals = func(Input) (values, unknown any, err error) {
		return map[string]any{
				"known": map[string]any{"fn::toJSON": "${machine.name}"}, "id": nil, "none": nil,
				"list": []any{map[string]any{"type": "InternalIP", "address": nil}},
				"odd":  map[string]any{"fn::toJSON": nil, "a": "b"},
			}, map[string]any{
				"id": true, "list": []any{map[string]any{"address": true}}, "odd": map[string]any{"fn::toJSON": true},
			}, nil
	}
	plan := planStack(t, p, m, Input{Variables: []byte(`{"machine":{"name":"n"},"provider_spec":{},"user_data":""}`)})
	want := map[string]any{
		"known": map[string]any{"fn::toJSON": "${machine.name}"}, "id": "unknown", "first": "InternalIP",
		"second": "unknown", "odd": "unknown",
	}
	got := knownIn(plan.Outputs)
	delete(got, "list")
	delete(got, "own")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the outputs (-want +got):\n%s", diff)
	}
	wantList := map[string]any{"After": []any{map[string]any{"type": "InternalIP", "address": nil}},
		"Unknown": []any{map[string]any{"type": nil, "address": true}}}
	gotList := map[string]any{"After": member(plan.Outputs.After, "list"),
		"Unknown": member(plan.Outputs.Unknown, "list")}
	if diff := cmp.Diff(wantList, gotList); diff != "" {
		t.Errorf("the output of which a part is known (-want +got):\n%s", diff)
	}
	wantOwn := []any{map[string]any{"a": nil}, "n", []any{}, map[string]any{"b": "eA=="}}
	if diff := cmp.Diff(wantOwn, member(plan.Outputs.After, "own")); diff != "" {
		t.Errorf("the output that the program puts together (-want +got):\n%s", diff)
	}
}

func TestStacksThatHaveNoPlan(t *testing.T) {
	long.Test(t)
	p := newStackPlanner(t)
	given := Input{Variables: []byte(`{"machine":{"name":"n"},"provider_spec":{"wait":"much"},"user_data":""}`)}
	with := func(name, content string) Module {
		m := stackOf("resources: {}\n")
		m.Files.(fstest.MapFS)[name] = &fstest.MapFile{Data: []byte(content)}
		return m
	}
	failing := stackOf("resources: {}\n")
	failing.Locals = func(Input) (values, unknown any, err error) {
		return nil, nil, errors.New("local.a has no value")
	}
	cases := map[string]struct {
		module  Module
		in      Input
		want    string
		wantWhy string
	}{
		"a program in another language is given what is known only": {module: with("Pulumi.yaml",
			"name: example\nruntime: go\n"), in: given, want: `a stack whose runtime is "go": only programs in YAML`},
		"there is no program": {module: Module{Files: fstest.MapFS{}}, in: given,
			want: "reading the program: open Pulumi.yaml"},
		"the program is a list": {module: with("Pulumi.yaml", "- a\n"), in: given,
			want: "it is no map; write name, runtime and resources"},
		"there is no stub of a provider that is not bridged": {module: with("sdks/aws/aws.yaml",
			"name: aws\nversion: 7.0.0\n"), in: given,
			want: `the package "aws" is not bridged from a Terraform provider`},
		"a provider of this machine is not another's": {module: with("sdks/a/a.yaml",
			"name: terraform-provider\nparameterization: {value: e30=}\n"), in: given,
			want: "names no provider with url and version"},
		"the mirror has no such provider": {module: with("sdks/a/a.yaml",
			"name: terraform-provider\nparameterization: {value: "+
				base64.StdEncoding.EncodeToString([]byte(`{"remote":{"url":"a/b","version":"1.0.0"}}`))+"}\n"),
			in: given, want: "finding the provider registry.opentofu.org/a/b 1.0.0: "},
		"the locals have no value": {module: failing, in: given,
			want: "local.a has no value"},
		"the variables are none": {module: stackOf("resources: {}\n"),
			in: Input{Variables: []byte(`[]`)}, want: "they are no JSON object"},
		"the provider refuses an argument": {
			module: stackOf("resources:\n  this: {type: \"kubectl:Manifest\", properties: {yamlBody: \"kind: Node\", " +
				"wait: \"${provider_spec.wait}\"}}\n"), in: given, want: "Expected a Boolean"},
		"the program does not use a provider as its schema says": {
			module: stackOf("resources:\n  this: {type: \"kubectl:Manifest\", properties: {colour: red}}\n"), in: given,
			want: "plan", wantWhy: "colour"},
		"an instance that exists is changed by a run": {module: stackOf("resources: {}\n"),
			in: Input{Variables: given.Variables, Existing: &Existing{}}, want: "its engine is Pulumi"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := p.Plan(t.Context(), tc.module, []Input{tc.in})[0].Err
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("it ends with %v; want %q", err, tc.want)
			}
			var reported string
			for _, one := range stackDiagnosticsOf(err) {
				reported += one.Summary + " " + one.Detail + "\n"
			}
			if !strings.Contains(reported, tc.wantWhy) {
				t.Errorf("the reason is %q; want %q", reported, tc.wantWhy)
			}
		})
	}
}

func TestAStackIsPlannedAsLongAsSomebodyWaits(t *testing.T) {
	p := newStackPlanner(t)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	err := p.Plan(ctx, stackOf(outputsStack),
		[]Input{{Variables: []byte(`{"machine":{"name":"n"},"provider_spec":{},"user_data":""}`)}})[0].Err
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it ends with %v", err)
	}
}

func stackDiagnosticsOf(err error) []failure.Diagnostic {
	var refused *failure.Error
	if errors.As(err, &refused) {
		return refused.Diagnostics
	}
	return nil
}
