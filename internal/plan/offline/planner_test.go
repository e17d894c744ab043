package offline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
	"github.com/machine-iac/machine-iac-operator/internal/engine/tofu"
	"github.com/machine-iac/machine-iac-operator/test/long"
)

// realEngine returns the engine that `make tools` built, or the one named by TOFU.
func realEngine(t testing.TB) tofu.Binary {
	t.Helper()
	path := os.Getenv("TOFU")
	if path == "" {
		path = "../../../bin/tofu"
	}
	binary, err := tofu.Find(t.Context(), tofu.FindOptions{Path: path})
	if err != nil {
		t.Fatalf("%v; run 'make tools'", err)
	}
	return binary
}

// newPlanner returns a planner with a mirror. change is optional.
func newPlanner(t testing.TB, change func(*Options)) *Planner {
	t.Helper()
	real := realEngine(t)
	options := Options{Binary: real, CacheDir: t.TempDir(), ProviderMirror: "../../../bin/schemas", Parallel: 2}
	if change != nil {
		change(&options)
	}
	if options.Binary == real { // a wrapper logs its calls in another folder
		confined, err := sandbox.New(sandbox.Options{Mode: sandbox.Preferred})
		if err != nil {
			t.Fatal(err)
		}
		options.Sandbox = confined
	}
	planner, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := planner.Close(); err != nil {
			t.Error(err)
		}
	})
	return planner
}

func exampleModule() Module {
	return Module{Files: os.DirFS("testdata/module"),
		Environment: map[string]string{"VSPHERE_USER": "unknown", "VSPHERE_PASSWORD": "unknown"}}
}

// inputWith returns an input for the example with fields of its provider_spec.
func inputWith(t testing.TB, providerSpec map[string]any, unknown Unknown) Input {
	t.Helper()
	raw, err := json.Marshal(map[string]any{
		"machine": map[string]any{"name": "given", "uid": "uid-1", "namespace": "ns", "cluster_id": "demo",
			"labels": map[string]any{}},
		"provider_spec": providerSpec,
		"user_data":     "",
	})
	if err != nil {
		t.Fatal(err)
	}
	return Input{Variables: raw, Unknown: unknown}
}

// planOne plans an input and fails without a plan.
func planOne(t testing.TB, planner *Planner, m Module, in Input) *Plan {
	t.Helper()
	outcome := planner.Plan(t.Context(), m, []Input{in})[0]
	if outcome.Err != nil {
		t.Fatalf("%v: %+v", outcome.Err, diagnosticsOf(outcome.Err))
	}
	return outcome.Plan
}

func diagnosticsOf(err error) []failure.Diagnostic {
	var refused *failure.Error
	if errors.As(err, &refused) {
		return refused.Diagnostics
	}
	return nil
}

// valuesAt returns the planned value and the marks of a resource's attribute.
func valuesAt(plan *Plan, address, name string) (after, unknown any) {
	for _, one := range plan.Resources {
		if one.Address == address {
			return one.Values.After.(map[string]any)[name], one.Values.Unknown.(map[string]any)[name]
		}
	}
	return "no resource " + address, nil
}

func TestWhatOnlyTheCloudKnowsIsUnknown(t *testing.T) {
	planner := newPlanner(t, nil)
	all := Unknown{Name: true, NamePrefix: "worker-", UID: true, ClusterID: true, UserData: true}
	cases := map[string]struct {
		unknown     Unknown
		wantOutputs map[string]any
		wantUnknown map[string]any
		wantName    any
	}{
		"a Machine of a MachineSet is not there yet": {
			unknown:     all,
			wantOutputs: map[string]any{"annotation": "text"},
			wantUnknown: map[string]any{"cluster_id": true, "instance_id": true, "name": true, "uid_hash": true},
		},
		"what is given is known, but for what the provider makes of it": {
			wantOutputs: map[string]any{
				"annotation": "text", "cluster_id": "demo", "name": "given",
				"uid_hash": "dca6fcc73fc7ad5bafd47aabbd1d50bfe1d89f61a9aebcfe6d5b5eaf3fd8f3cf",
			},
			wantUnknown: map[string]any{"instance_id": true},
			wantName:    "given",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plan := planOne(t, planner, exampleModule(), inputWith(t, map[string]any{"annotation": "text"}, tc.unknown))
			got := plan.Outputs.After.(map[string]any)
			if hash, known := got["uid_hash"]; known {
				tc.wantOutputs["uid_hash"] = hash // only whether it is known matters
			}
			if diff := cmp.Diff(tc.wantOutputs, got); diff != "" {
				t.Errorf("known outputs (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantUnknown, plan.Outputs.Unknown); diff != "" {
				t.Errorf("unknown outputs (-want +got):\n%s", diff)
			}
			if after, _ := valuesAt(plan, "vsphere_virtual_machine.this", "name"); after != tc.wantName {
				t.Errorf("the name is %v; want %v", after, tc.wantName)
			}
			for _, computed := range []string{"moid", "uuid", "firmware", "guest_id"} {
				if after, unknown := valuesAt(plan, "vsphere_virtual_machine.this", computed); after != nil ||
					unknown != true {
					t.Errorf("%s is %v, unknown %v; want it unknown", computed, after, unknown)
				}
			}
			if after, unknown := valuesAt(plan, "vsphere_virtual_machine.this", "boot_delay"); after != nil ||
				unknown != nil {
				t.Errorf("boot_delay is %v, unknown %v; want nothing said of it", after, unknown)
			}
			if size, _ := valuesAt(plan, "vsphere_virtual_machine.this", "disk"); !strings.Contains(fmt.Sprint(size),
				"size:16") {
				t.Errorf("the disk is %v; want its size, which is given", size)
			}
			if diff := cmp.Diff([]string{"data.vsphere_datacenter.this", "data.vsphere_virtual_machine.template"},
				plan.Reads); diff != "" {
				t.Errorf("data sources to read (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"vsphere_virtual_machine.this"}, plan.Open); diff != "" {
				t.Errorf("open conditions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatADataSourceFindsIsPlannedOnce(t *testing.T) {
	t.Parallel()
	planner := newPlanner(t, nil)
	plan := planOne(t, planner, exampleModule(), inputWith(t, map[string]any{"each": true}, Unknown{}))
	const address = `terraform_data.each["(known after apply)"]`
	for _, one := range plan.Resources {
		if one.Address != address {
			continue
		}
		if diff := cmp.Diff(map[string]any{"known": "always"}, one.Values.After.(map[string]any)["input"]); diff != "" {
			t.Errorf("what is known (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string]any{"network": true}, one.Values.Unknown.(map[string]any)["input"]); diff != "" {
			t.Errorf("what is unknown (-want +got):\n%s", diff)
		}
		return
	}
	t.Errorf("the plan has no %s: %+v", address, plan.Resources)
}

func TestUserDataIsSensitive(t *testing.T) {
	planner := newPlanner(t, nil)
	in := inputWith(t, map[string]any{}, Unknown{})
	in.Variables = []byte(strings.Replace(string(in.Variables), `"user_data":""`, `"user_data":"t0p-secret"`, 1))
	plan := planOne(t, planner, exampleModule(), in)
	sensitive := plan.Resources[0].Values.Sensitive.(map[string]any)
	if diff := cmp.Diff(map[string]any{"data": true}, sensitive["extra_config"]); diff != "" {
		t.Errorf("sensitive parts (-want +got):\n%s", diff)
	}
}

func TestTextIsNeverATemplate(t *testing.T) {
	planner := newPlanner(t, nil)
	for _, text := range []string{`${1 + 1}`, `%{ for x in [1] }x%{ endfor }`, `"} resource "x" "y" {}`, "a\nb\t\u2028",
		`$${escaped}`} {
		plan := planOne(t, planner, exampleModule(), inputWith(t, map[string]any{"annotation": text}, Unknown{}))
		if got := plan.Outputs.After.(map[string]any)["annotation"]; got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// wantRefusal checks that an input is rejected as invalid, with a text in the engine's diagnostics.
func wantRefusal(t *testing.T, outcome Outcome, want string) {
	t.Helper()
	if found := fmt.Sprintf("%+v",
		diagnosticsOf(outcome.Err)); failure.ClassOf(outcome.Err) != failure.InvalidConfiguration ||
		!strings.Contains(found, want) {
		t.Errorf("it ends with %v: %s; want %q", outcome.Err, found, want)
	}
}

func TestWhatTheProviderRefuses(t *testing.T) {
	long.Test(t) // a recorded schema checks nothing
	outcome := newPlanner(t, nil).Plan(t.Context(), exampleModule(),
		[]Input{inputWith(t, map[string]any{"scsiType": "floppy"}, Unknown{})})[0]
	wantRefusal(t, outcome, "expected scsi_type to be one of")
}

func TestWhatTheEngineRefuses(t *testing.T) {
	planner := newPlanner(t, nil)
	cases := map[string]struct {
		providerSpec map[string]any
		want         string
	}{
		"a number of resources that depends on what is read": {map[string]any{"counted": true},
			"Invalid count argument"},
		"a value that is not of the variable's type": {map[string]any{"counted": "perhaps"},
			"a bool is required"},
	}
	var inputs []Input
	var wants []string
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			wantRefusal(t,
				planner.Plan(t.Context(), exampleModule(), []Input{inputWith(t, tc.providerSpec, Unknown{})})[0],
				tc.want)
		})
		inputs, wants = append(inputs, inputWith(t, map[string]any{}, Unknown{}),
			inputWith(t, tc.providerSpec, Unknown{})), append(wants, "", tc.want)
	}
	t.Run("does not keep others from being planned", func(t *testing.T) {
		for n, outcome := range planner.Plan(t.Context(), exampleModule(), inputs) {
			if found := fmt.Sprintf("%+v", diagnosticsOf(outcome.Err)); (wants[n] == "") != (outcome.Err == nil) ||
				!strings.Contains(found, wants[n]) {
				t.Errorf("input %d ends with %v: %s; want %q", n, outcome.Err, found, wants[n])
			}
		}
	})
}

func TestEachInputHasItsOwnPlan(t *testing.T) {
	planner := newPlanner(t, func(o *Options) { o.Parallel = 1 })
	var inputs []Input
	for n := range maxCalls + 2 {
		inputs = append(inputs, inputWith(t, map[string]any{"annotation": fmt.Sprintf("number %d", n)}, Unknown{}))
	}
	for n, outcome := range planner.Plan(t.Context(), exampleModule(), inputs) {
		if outcome.Err != nil {
			t.Fatal(outcome.Err)
		}
		if got, want := outcome.Plan.Outputs.After.(map[string]any)["annotation"], fmt.Sprintf("number %d",
			n); got != want || len(outcome.Plan.Resources) != 1 {
			t.Errorf("plan %d has %q and %d resources; want %q and 1", n, got, len(outcome.Plan.Resources), want)
		}
	}
	if left, err := filepath.Glob(filepath.Join(planner.scratch, "*", "machines.tfvars.json")); err != nil ||
		len(left) > 0 {
		t.Errorf("variables are left behind: %v, %v", left, err)
	}
}

// logged returns an engine that logs its commands, and a function that counts a command in the log.
func logged(t *testing.T) (tofu.Binary, func(command string) int) {
	t.Helper()
	real, dir := realEngine(t), t.TempDir()
	log, wrapper := filepath.Join(dir, "log"), filepath.Join(dir, "tofu")
	script := fmt.Sprintf("#!/bin/sh\necho \"$1\" >>%s\nexec %s \"$@\"\n", log, real.Path)
	if err := os.WriteFile(wrapper, []byte(script), 0o700); err != nil { //nolint:gosec // executable
		t.Fatal(err)
	}
	wrapped := real
	wrapped.Path = wrapper
	return wrapped, func(command string) int {
		content, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		times := 0
		for line := range strings.Lines(string(content)) {
			if line == command+"\n" {
				times++
			}
		}
		return times
	}
}

func TestAModuleIsInitialisedOnce(t *testing.T) {
	binary, count := logged(t)
	cache := t.TempDir()
	change := func(o *Options) { o.Binary, o.CacheDir = binary, cache }
	in := inputWith(t, map[string]any{}, Unknown{})
	var group sync.WaitGroup
	for range 3 { // like three processes that start at once
		planner := newPlanner(t, change)
		group.Go(func() {
			if outcome := planner.Plan(t.Context(), exampleModule(), []Input{in}); outcome[0].Err != nil {
				t.Error(outcome[0].Err)
			}
		})
	}
	group.Wait()
	planOne(t, newPlanner(t, change), exampleModule(), in)
	if got := count("init"); got != 1 {
		t.Errorf("there were %d initialisations; want 1", got)
	}
	if got := count("plan"); got != 4 {
		t.Errorf("there were %d plans; want 4", got)
	}
	t.Run("and again when its provider has gone", func(t *testing.T) {
		links, err := filepath.Glob(filepath.Join(cache, "*", ".terraform", "providers", "*", "*", "*", "*",
			runtime.GOOS+"_"+runtime.GOARCH))
		if err != nil || len(links) != 1 {
			t.Fatalf("want one provider, got %v, %v", links, err)
		}
		if err := os.RemoveAll(links[0]); err != nil {
			t.Fatal(err)
		}
		planOne(t, newPlanner(t, change), exampleModule(), in)
		if got := count("init"); got != 2 {
			t.Errorf("there were %d initialisations; want 2", got)
		}
	})
	t.Run("and again when it was left half done", func(t *testing.T) {
		folders, err := filepath.Glob(filepath.Join(cache, "*-????????????????"))
		if err != nil || len(folders) != 1 {
			t.Fatalf("want one module, got %v, %v", folders, err)
		}
		if err := os.Rename(folders[0], filepath.Join(cache, ".new-"+filepath.Base(folders[0]))); err != nil {
			t.Fatal(err)
		}
		planOne(t, newPlanner(t, change), exampleModule(), in)
		if got := count("init"); got != 3 {
			t.Errorf("there were %d initialisations; want 3", got)
		}
		if left, err := filepath.Glob(filepath.Join(cache, ".new-*")); err != nil || len(left) > 0 {
			t.Errorf("half a module is left behind: %v, %v", left, err)
		}
	})
	t.Run("and again when it has changed", func(t *testing.T) {
		changed := t.TempDir()
		if err := os.CopyFS(changed, os.DirFS("testdata/module")); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(changed, "more.tf"), []byte("locals {\n  more = 1\n}\n"),
			0o600); err != nil {
			t.Fatal(err)
		}
		planOne(t, newPlanner(t, change), Module{Files: os.DirFS(changed), Environment: exampleModule().Environment},
			in)
		if got := count("init"); got != 4 {
			t.Errorf("there were %d initialisations; want 4", got)
		}
	})
}

func TestAModuleWithoutProviders(t *testing.T) {
	dir := t.TempDir()
	content := `
variable "machine" { type = any }
variable "provider_spec" { type = any }
variable "user_data" { type = string }
resource "terraform_data" "this" { input = var.machine.namespace }
output "id" { value = terraform_data.this.id }
`
	content = strings.ReplaceAll(content, "{ type", "{\n  type")
	content = strings.NewReplacer(" }\n", "\n}\n", "{ input", "{\n  input", "{ value", "{\n  value").Replace(content)
	if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	plan := planOne(t, newPlanner(t, func(o *Options) { o.ProviderMirror = "" }), Module{Files: os.DirFS(dir)},
		inputWith(t, map[string]any{}, Unknown{}))
	if after, _ := valuesAt(plan, "terraform_data.this", "input"); after != "ns" {
		t.Errorf("the input is %v; want ns", after)
	}
	if diff := cmp.Diff(map[string]any{"id": true}, plan.Outputs.Unknown); diff != "" {
		t.Errorf("unknown outputs (-want +got):\n%s", diff)
	}
}

func TestAPlanThatIsInterrupted(t *testing.T) {
	planner := newPlanner(t, nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	outcome := planner.Plan(ctx, exampleModule(), []Input{inputWith(t, map[string]any{}, Unknown{})})[0]
	if outcome.Err == nil || !strings.Contains(outcome.Err.Error(), "enough") {
		t.Errorf("it ends with %v; want the reason", outcome.Err)
	}
}

func TestAnInitialisationThatTakesTooLong(t *testing.T) {
	planner := newPlanner(t, func(o *Options) { o.InitTimeout = time.Millisecond })
	outcome := planner.Plan(t.Context(), exampleModule(), []Input{inputWith(t, map[string]any{}, Unknown{})})[0]
	if outcome.Err == nil || !strings.Contains(outcome.Err.Error(), "took too long") {
		t.Errorf("it ends with %v; want the reason", outcome.Err)
	}
	if left, err := filepath.Glob(filepath.Join(planner.options.CacheDir, ".new-*")); err != nil || len(left) > 0 {
		t.Errorf("half a module is left behind: %v, %v", left, err)
	}
}

func TestAProviderThatTheMirrorLacks(t *testing.T) {
	planner := newPlanner(t, func(o *Options) { o.ProviderMirror = t.TempDir() })
	outcome := planner.Plan(t.Context(), exampleModule(), []Input{inputWith(t, map[string]any{}, Unknown{})})[0]
	if found := fmt.Sprintf("%+v", diagnosticsOf(outcome.Err)); !strings.Contains(found, "hashicorp/vsphere") {
		t.Errorf("it ends with %v: %s; want the provider's name", outcome.Err, found)
	}
}

func TestNewRefuses(t *testing.T) {
	for name, options := range map[string]Options{
		"no engine":               {CacheDir: t.TempDir()},
		"no cache":                {Binary: realEngine(t)},
		"a mirror that is no one": {Binary: realEngine(t), CacheDir: t.TempDir(), ProviderMirror: "nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			if planner, err := New(options); err == nil {
				t.Errorf("it returns %v", planner)
			}
		})
	}
}

func TestATemporaryFolderThatIsTooDeep(t *testing.T) {
	deep := filepath.Join(t.TempDir(), strings.Repeat("d", 100))
	if err := os.Mkdir(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	options := Options{Binary: realEngine(t), CacheDir: t.TempDir()}
	t.Setenv("TMPDIR", deep)
	if _, err := New(options); err == nil || !strings.Contains(err.Error(), "set TMPDIR to a shorter one") {
		t.Errorf("it ends with %v; want the fix", err)
	}
	if left, err := os.ReadDir(deep); err != nil || len(left) > 0 {
		t.Errorf("left behind are %v, %v", left, err)
	}
}

func TestCloseLeavesNothingBehind(t *testing.T) {
	planner := newPlanner(t, nil)
	planOne(t, planner, exampleModule(), inputWith(t, map[string]any{}, Unknown{}))
	if err := planner.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(planner.scratch); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left behind: %v", planner.scratch, err)
	}
}
