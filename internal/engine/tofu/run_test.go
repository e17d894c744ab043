package tofu

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/engine/redact"
)

// instance is a module of the built-in provider: image can't be changed in place, size can.
const instance = `
variable "image" { type = string }
variable "size" { type = string }
variable "user_data" {
  type      = string
  default   = ""
  sensitive = true
}
resource "terraform_data" "this" {
  input            = { size = var.size, user_data = var.user_data }
  triggers_replace = [var.image]
}
output "size" { value = terraform_data.this.output.size }
output "user_data" {
  value     = var.user_data
  sensitive = true
}
`

func TestInstanceFromCreateToDestroy(t *testing.T) {
	e, backend := newEngine(t), newBackend(t)
	prepare(t, e, moduleOf("sha256:instance", instance))
	at := func(id string, values map[string]any) *Workspace {
		return open(t, e, RunSpec{ID: id, Module: "sha256:instance", Variables: variables(t, values), Backend: backend.at("m")})
	}
	const data = "${file(\"/etc/hostname\")} %{ if true }x%{ endif } $${y}"

	create := at("create", map[string]any{"image": "one", "size": "small", "user_data": data})
	report, err := create.Apply(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !report.CreatesOnly() || report.Done != (engine.Summary{Operation: engine.OperationApply, Add: 1}) || report.Duration <= 0 {
		t.Errorf("create reports %+v, want one resource created", report)
	}
	if len(report.Applied) != 1 || report.Applied[0].Address != "terraform_data.this" || report.Applied[0].ID == "" {
		t.Errorf("create applied %+v, want the resource with its id", report.Applied)
	}
	if got := string(report.Outputs["size"].Value); got != `"small"` {
		t.Errorf("output size is %s, want small", got)
	}
	if _, outputs := backend.state(t, "m"); outputs["user_data"] != data {
		t.Errorf("user_data became %q: its text is not taken as data", outputs["user_data"])
	}
	closeNow(t, create)

	same := at("same", map[string]any{"image": "one", "size": "small", "user_data": data})
	if report := plan(t, same, PlanOptions{Refresh: true}); !report.NoChange() {
		t.Errorf("a plan without a change reports %+v", report)
	}
	closeNow(t, same)

	resize := at("resize", map[string]any{"image": "one", "size": "large", "user_data": data})
	if report := plan(t, resize, PlanOptions{Out: true, Lock: true, Refresh: true}); !report.InPlaceOnly() || report.NoChange() {
		t.Errorf("a plan that changes in place reports %+v", report)
	}
	if report, err = resize.ApplyPlan(t.Context()); err != nil {
		t.Fatal(err)
	}
	if report.Done.Change != 1 || string(report.Outputs["size"].Value) != `"large"` {
		t.Errorf("applying the plan reports %+v, want one change", report)
	}
	closeNow(t, resize)

	reimage := at("reimage", map[string]any{"image": "two", "size": "large", "user_data": data})
	report = plan(t, reimage, PlanOptions{Refresh: true})
	if report.InPlaceOnly() || len(report.Destroys()) != 1 || report.Destroys()[0].Reason == "" {
		t.Errorf("a plan that replaces reports %+v", report)
	}
	if report = plan(t, reimage, PlanOptions{Destroy: true}); report.Planned.Remove != 1 {
		t.Errorf("a plan to destroy reports %+v", report)
	}
	if report, err = reimage.Destroy(t.Context()); err != nil || report.Done.Remove != 1 {
		t.Errorf("destroy reports %+v, %v, want one resource removed", report, err)
	}
	if resources, _ := backend.state(t, "m"); len(resources) != 0 || backend.locked("m") {
		t.Errorf("after destroy the state has %v and locked is %t, want neither", resources, backend.locked("m"))
	}
}

func plan(t *testing.T, f *Workspace, o PlanOptions) *engine.Report {
	t.Helper()
	report, err := f.Plan(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func closeNow(t *testing.T, f *Workspace) {
	t.Helper()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// slow makes first, and then takes its time.
const slow = `
resource "terraform_data" "first" {}
resource "terraform_data" "second" {
  depends_on = [terraform_data.first]
  provisioner "local-exec" { command = "sleep 20" }
}
`

// interruptAt runs apply and ends its context when the resource is begun.
func interruptAt(t *testing.T, e *Engine, r RunSpec, address string) (*Workspace, *engine.Report, error) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	r.Progress = func(event engine.Event) {
		if event.Kind == engine.EventStarted && event.Address == address {
			cancel(errors.New("shutting down"))
		}
	}
	f := open(t, e, r)
	report, err := f.Apply(ctx)
	return f, report, err
}

func TestInterruptSavesTheState(t *testing.T) {
	e, backend := newEngine(t), newBackend(t)
	prepare(t, e, moduleOf("slow", slow))
	began := time.Now()
	_, report, err := interruptAt(t, e, RunSpec{ID: "r", Module: "slow", Backend: backend.at("m")}, "terraform_data.second")
	if failure.ClassOf(err) != failure.Interrupted || !strings.Contains(err.Error(), "shutting down") {
		t.Errorf("error is %v (%s), want that it was interrupted and why", err, failure.ClassOf(err))
	}
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("the interrupt took %s", took)
	}
	if len(report.Applied) == 0 || report.Applied[0].Address != "terraform_data.first" {
		t.Errorf("applied is %+v, want the first resource", report.Applied)
	}
	if resources, _ := backend.state(t, "m"); len(resources) == 0 || resources[0] != "terraform_data.first" {
		t.Errorf("the state has %v, want the first resource", resources)
	}
	if backend.locked("m") {
		t.Error("the state is still locked")
	}
}

func TestContextThatHasEndedStartsNothing(t *testing.T) {
	e, backend := newEngine(t), newBackend(t)
	prepare(t, e, moduleOf("instance", instance))
	f := open(t, e, RunSpec{ID: "r", Module: "instance", Backend: backend.at("m")})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	before := e.Starts()
	report, err := f.Apply(ctx)
	if failure.ClassOf(err) != failure.Interrupted || report == nil {
		t.Errorf("apply returns %v and %v, want a report and that it was interrupted", report, err)
	}
	if e.Starts() != before {
		t.Error("an engine was started")
	}
}

func TestStateThatCannotBeSaved(t *testing.T) {
	e, backend := newEngine(t), newBackend(t)
	prepare(t, e, moduleOf("leaving", `
resource "terraform_data" "first" {}
resource "terraform_data" "second" {
  depends_on = [terraform_data.first]
  provisioner "local-exec" { command = "true" }
}`))
	f := open(t, e, RunSpec{ID: "r", Identity: map[string]string{"uid": "u-1"}, Module: "leaving", Backend: backend.at("m"),
		Progress: func(event engine.Event) {
			if event.Address == "terraform_data.second" && event.Kind == engine.EventStarted {
				backend.set(func(b *stateBackend) { b.broken = true })
			}
		}})
	report, err := f.Apply(t.Context())
	if failure.ClassOf(err) != failure.StateNotSaved {
		t.Fatalf("error is %v (%s), want that the state was not saved", err, failure.ClassOf(err))
	}
	if len(report.Applied) != 2 {
		t.Errorf("applied is %+v, want both resources", report.Applied)
	}
	state := f.ErroredState()
	if resources, _ := readState(t, state); len(resources) != 2 {
		t.Errorf("the errored state has %v, want both resources", resources)
	}
	if err := f.Keep(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Errorf("closing a folder that is kept: %v", err)
	}
	if _, err := os.Stat(filepath.Join(f.dir, variablesFile)); !os.IsNotExist(err) {
		t.Errorf("the variables of a kept folder: %v, want that they are gone", err)
	}
	if own := e.AbandonedRuns(); len(own) != 1 || own[0].ID != "r" || len(own[0].Identity) == 0 {
		t.Errorf("the engine itself lists %+v, want the run that it kept", own)
	}
	if err := e.Close(t.Context()); err != nil {
		t.Fatalf("closing the engine, whose slots are all back: %v", err)
	}
	next := newEngine(t, func(o *Options) { o.WorkDir = e.options.WorkDir })
	leftovers := next.AbandonedRuns()
	if len(leftovers) != 1 {
		t.Fatalf("the next engine finds %d abandoned runs, want the kept one", len(leftovers))
	}
	if kept, err := leftovers[0].ErroredState(); err != nil || !bytes.Equal(kept, state) {
		t.Errorf("the kept state is %s, %v; want the one that was not saved", kept, err)
	}
}

func TestErroredStateIsNilWhereThereIsNone(t *testing.T) {
	e, backend := newEngine(t), newBackend(t)
	prepare(t, e, moduleOf("instance", instance))
	f := open(t, e, RunSpec{ID: "r", Module: "instance", Backend: backend.at("m")})
	if state := f.ErroredState(); state != nil {
		t.Errorf("ErroredState = %q, want none", state)
	}
}

func TestErrorsAreClassified(t *testing.T) {
	e, backend := newEngine(t), newBackend(t)
	prepare(t, e, moduleOf("failing", `
variable "size" {
  type = string
  validation {
    condition     = var.size != "huge"
    error_message = "The size must not be huge; choose small."
  }
}
variable "command" {
  type    = string
  default = "true"
}
resource "terraform_data" "this" {
  input = var.size
  provisioner "local-exec" { command = var.command }
}`))
	cases := map[string]struct {
		variables map[string]any
		locked    bool
		wantClass failure.Class
		wantText  []string
	}{
		"a variable that is missing": {
			variables: map[string]any{}, wantClass: failure.InvalidConfiguration, wantText: []string{"No value for required variable", `"size"`},
		},
		"a value of another type": {
			variables: map[string]any{"size": []string{"a"}}, wantClass: failure.InvalidConfiguration, wantText: []string{"Invalid value for", "string required"},
		},
		"a value that the module refuses": {
			variables: map[string]any{"size": "huge"}, wantClass: failure.InvalidConfiguration, wantText: []string{"must not be huge; choose small"},
		},
		"what a provider says and the module lists as final": {
			variables: map[string]any{"size": "small", "command": "echo no-such-flavor; exit 1"}, wantClass: failure.InvalidConfiguration,
			wantText: []string{"no-such-flavor"},
		},
		"what a provider says": {
			variables: map[string]any{"size": "small", "command": "echo VcpuLimitExceeded: too many; exit 1"},
			wantClass: failure.Quota, wantText: []string{"VcpuLimitExceeded"},
		},
		"a state that is locked": {
			variables: map[string]any{"size": "small"}, locked: true, wantClass: failure.Locked, wantText: []string{"state lock"},
		},
	}
	id := 0
	for name, tc := range cases {
		id++
		t.Run(name, func(t *testing.T) {
			state := fmt.Sprint("state-", id)
			backend.set(func(b *stateBackend) { b.locks[state] = tc.locked })
			f := open(t, e, RunSpec{
				ID: "r", Module: "failing", Variables: variables(t, tc.variables), Backend: backend.at(state),
				Final: regexp.MustCompile(`no-such-flavor`).MatchString,
			})
			_, err := f.Apply(t.Context())
			if failure.ClassOf(err) != tc.wantClass {
				t.Errorf("class is %s, want %s", failure.ClassOf(err), tc.wantClass)
			}
			expectTexts(t, err, tc.wantText)
			closeNow(t, f)
		})
	}
}

// TestAProviderThatDiesWhileItStarts has a provider that ends before it has said where it listens.
func TestAProviderThatDiesWhileItStarts(t *testing.T) {
	mirror := t.TempDir()
	file := filepath.Join(mirror, "registry.opentofu.org", "acme", "dead", "1.0.0", runtime.GOOS+"_"+runtime.GOARCH, "terraform-provider-dead")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("#!/bin/sh\nexit 0\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	e, backend := newEngine(t, func(o *Options) { o.ProviderMirror = mirror }), newBackend(t)
	prepare(t, e, Module{Digest: "dead", Files: files(map[string]string{
		lockFile: "provider \"registry.opentofu.org/acme/dead\" {\n  version = \"1.0.0\"\n}\n",
		"main.tf": `
terraform {
  required_providers {
    dead = {
      source  = "registry.opentofu.org/acme/dead"
      version = "1.0.0"
    }
  }
}
resource "dead_vm" "this" {}
output "id" { value = dead_vm.this.id }`,
	})})
	for op, run := range map[failure.Op]func(*Workspace) (*engine.Report, error){
		failure.OpPlan:  func(f *Workspace) (*engine.Report, error) { return f.Plan(t.Context(), PlanOptions{}) },
		failure.OpApply: func(f *Workspace) (*engine.Report, error) { return f.Apply(t.Context()) },
	} {
		t.Run(string(op), func(t *testing.T) {
			f := open(t, e, RunSpec{ID: "r", Module: "dead", Backend: backend.at("m"), Variables: []byte("{}")})
			_, err := run(f)
			if failure.ClassOf(err) != failure.Transient {
				t.Errorf("class is %s, want %s: %v", failure.ClassOf(err), failure.Transient, err)
			}
			expectTexts(t, err, []string{"Unrecognized remote plugin message"})
			closeNow(t, f)
		})
	}
}

func TestNothingOfTheParentLeaks(t *testing.T) {
	t.Setenv("POISON", "parent")
	t.Setenv("TF_VAR_poison", "parent")
	t.Setenv("TF_CLI_ARGS", "-no-such-flag")
	t.Setenv("TF_CLI_CONFIG_FILE", "/nowhere")
	t.Setenv("TF_LOG", "trace")
	t.Setenv("TF_WORKSPACE", "poison")
	t.Setenv("TF_DATA_DIR", "/nowhere")
	e, backend := newEngine(t, func(o *Options) { o.Environment = map[string]string{"HTTPS_PROXY": "http://proxy:3128"} }), newBackend(t)
	prepare(t, e, moduleOf("env", `
variable "poison" { default = "none" }
resource "terraform_data" "this" {
  provisioner "local-exec" { command = "env > seen" }
}
output "poison" { value = var.poison }`))
	f := open(t, e, withEnvironment(RunSpec{ID: "r", Module: "env", Backend: backend.at("m")}, map[string]string{"CLOUD_TOKEN": "t-1"}))
	report, err := f.Apply(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := string(report.Outputs["poison"].Value); got != `"none"` {
		t.Errorf("variable poison is %s, want none", got)
	}
	seen, err := os.ReadFile(filepath.Join(f.dir, "seen"))
	if err != nil {
		t.Fatal(err)
	}
	allowed := map[string]bool{"PWD": true, "SHLVL": true, "_": true, "OLDPWD": true} // a shell's own
	for _, name := range []string{
		"CLOUD_TOKEN", "HTTPS_PROXY", "HOME", "TMPDIR", "CHECKPOINT_DISABLE", "TF_CLI_CONFIG_FILE", "TF_HTTP_ADDRESS", "TF_HTTP_LOCK_ADDRESS",
		"TF_HTTP_UNLOCK_ADDRESS", "TF_HTTP_USERNAME", "TF_HTTP_PASSWORD", "TF_IN_AUTOMATION", "TF_APPEND_USER_AGENT", "TF_DISABLE_PLUGIN_TLS",
		"GOMAXPROCS", "TF_LOG", "TF_LOG_CORE", "TF_LOG_PATH", "TF_LOG_PROVIDER",
	} {
		allowed[name] = true
	}
	for line := range strings.Lines(string(seen)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if !allowed[name] {
			t.Errorf("the engine sees %s=%s", name, value)
		}
		if strings.Contains(value, "nowhere") || strings.HasPrefix(name, "TF_LOG") && value != "" {
			t.Errorf("the engine sees the parent's %s=%s", name, value)
		}
	}
	for _, want := range []string{"CLOUD_TOKEN=t-1\n", "HTTPS_PROXY=http://proxy:3128\n", "HOME=" + f.dir + "\n", "TMPDIR=" + f.slot.link + "\n"} {
		if !strings.Contains(string(seen), want) {
			t.Errorf("the engine does not see %s among %s", want, seen)
		}
	}
}

func TestSensitiveStringsAreNeverShown(t *testing.T) {
	e, backend := newEngine(t), newBackend(t)
	prepare(t, e, moduleOf("showing", `
variable "user_data" { type = string }
resource "terraform_data" "this" {
  input = var.user_data
  provisioner "local-exec" { command = "echo pass $TOKEN for ${base64encode(var.user_data)}; exit 1" }
}
output "all" { value = var.user_data }`))
	const secret, token = "#cloud-config\npassword: \"hunter22\"\n", "t0ken-of-cloud"
	var events []engine.Event
	f := open(t, e, RunSpec{
		ID: "r", Module: "showing", Backend: backend.at("m"),
		Variables:   variables(t, map[string]any{"user_data": secret}),
		Environment: map[string]string{"TOKEN": token},
		Sensitive:   []string{secret, token},
		Progress:    func(event engine.Event) { events = append(events, event) },
	})
	report, err := f.Apply(t.Context())
	if err == nil {
		t.Fatal("the provisioner did not fail")
	}
	var failed *failure.Error
	if !errors.As(err, &failed) {
		t.Fatal(err)
	}
	shown := fmt.Sprintf("%v\n%+v\n%+v\n%+v", err, failed.Diagnostics, report, events)
	for _, forbidden := range []string{"hunter22", token, backendPassword, "aHVudGVyMjI", "I2Nsb3VkLWNvbmZpZ"} {
		if strings.Contains(shown, forbidden) {
			t.Errorf("%q is shown: %s", forbidden, shown)
		}
	}
	if !strings.Contains(err.Error(), "pass "+redact.Redacted) {
		t.Errorf("error %q does not say what failed", err)
	}
}

func TestCloseLeavesNoSecret(t *testing.T) {
	e, backend := newEngine(t), newBackend(t)
	prepare(t, e, moduleOf("instance", instance))
	f := open(t, e, RunSpec{ID: "r", Module: "instance", Backend: backend.at("m"),
		Variables: variables(t, map[string]any{"image": "one", "size": "small", "user_data": "hunter22"})})
	info, err := os.Stat(filepath.Join(f.dir, variablesFile))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the variables have mode %v, want 0600", info.Mode())
	}
	if report := plan(t, f, PlanOptions{Out: true}); !report.CreatesOnly() {
		t.Errorf("plan reports %+v", report)
	}
	closeNow(t, f)
	closeNow(t, f)
	for _, name := range tree(t, string(e.dir)) {
		content, err := os.ReadFile(name)
		if err == nil && (strings.Contains(string(content), "hunter22") || strings.Contains(name, "/runs/")) {
			t.Errorf("%s is left", name)
		}
	}
	if _, err := f.Apply(t.Context()); err == nil {
		t.Error("a closed run applies")
	}
}

func TestTenRunsShareOneInitAndTwoSlots(t *testing.T) {
	e, backend := newEngine(t), newBackend(t)
	var group sync.WaitGroup
	for i := range 10 {
		group.Go(func() {
			id := fmt.Sprint("run-", i)
			if err := e.Prepare(t.Context(), moduleOf("instance", instance)); err != nil {
				t.Error(err)
				return
			}
			f, err := e.Open(t.Context(), RunSpec{ID: id, Module: "instance", Backend: backend.at(id),
				Variables: variables(t, map[string]any{"image": "one", "size": id})})
			if err != nil {
				t.Error(err)
				return
			}
			defer f.Close()
			report, err := f.Apply(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			if got := string(report.Outputs["size"].Value); got != `"`+id+`"` {
				t.Errorf("%s has output %s", id, got)
			}
		})
	}
	group.Wait()
	// two slots ask for the version once, one init, ten applies
	if starts := e.Starts(); starts > 13 {
		t.Errorf("%d CLI processes were started, want at most 13", starts)
	}
	for i := range 10 {
		id := fmt.Sprint("run-", i)
		_, outputs := backend.state(t, id)
		if diff := cmp.Diff(map[string]any{"size": id, "user_data": ""}, outputs); diff != "" {
			t.Errorf("state of %s (-want +got):\n%s", id, diff)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	e := newEngine(t)
	prepare(t, e, moduleOf("instance", instance))
	cases := map[string]struct {
		run  RunSpec
		want string
	}{
		"an id that leads elsewhere":       {run: RunSpec{ID: "../x"}, want: "cannot be used as a file name"},
		"variables that are no object":     {run: RunSpec{Variables: []byte(`["a"]`)}, want: "not a JSON object"},
		"a module that is not prepared":    {run: RunSpec{Module: "other"}, want: "not prepared"},
		"an environment that is reserved":  {run: RunSpec{Environment: map[string]string{"TF_LOG": "trace"}}, want: "TF_LOG"},
		"an environment that loads code":   {run: RunSpec{Environment: map[string]string{"LD_PRELOAD": "x"}}, want: "LD_PRELOAD"},
		"an environment that can't be set": {run: RunSpec{Environment: map[string]string{"A=B": "x"}}, want: `"A=B"`},
		"a file that is reserved":          {run: RunSpec{Files: map[string]string{"TF_CLI_CONFIG_FILE": "x"}}, want: "TF_CLI_CONFIG_FILE"},
		"a file that is a value as well":   {run: RunSpec{Files: map[string]string{"A": "x"}, Environment: map[string]string{"A": "x"}}, want: "A is set as both"},
		"no backend":                       {run: RunSpec{Backend: Backend{Username: "x"}}, want: "no state backend"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := tc.run
			if r.ID == "" {
				r.ID = "r"
			}
			if r.Module == "" {
				r.Module = "instance"
			}
			if r.Variables == nil {
				r.Variables = []byte("{}")
			}
			if r.Backend == (Backend{}) {
				r.Backend.Address = "http://127.0.0.1:1"
			}
			f, err := e.Open(t.Context(), r)
			if f != nil {
				_ = f.Close()
			}
			expectTexts(t, err, []string{tc.want, string(failure.OpOpen)})
			if failure.ClassOf(err) != failure.Unknown {
				t.Errorf("class is %s, want %s: no providerSpec caused it", failure.ClassOf(err), failure.Unknown)
			}
		})
	}
}

func TestOpenRefusesAnIDThatIsInUse(t *testing.T) {
	e, backend := newEngine(t), newBackend(t)
	prepare(t, e, moduleOf("instance", instance))
	open(t, e, RunSpec{ID: "r", Module: "instance", Backend: backend.at("m")})
	_, err := e.Open(t.Context(), RunSpec{ID: "r", Module: "instance", Backend: backend.at("m"), Variables: []byte("{}")})
	expectTexts(t, err, []string{"the run is open"})
}

func TestOpenWaitsForASlotUnderItsContext(t *testing.T) {
	e, backend := newEngine(t, func(o *Options) { o.Slots = 1 }), newBackend(t)
	prepare(t, e, moduleOf("instance", instance))
	f := open(t, e, RunSpec{ID: "one", Module: "instance", Backend: backend.at("m")})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	waiting := RunSpec{ID: "two", Module: "instance", Backend: backend.at("m"), Variables: []byte("{}")}
	if _, err := e.Open(ctx, waiting); !errors.Is(err, context.DeadlineExceeded) || failure.ClassOf(err) != failure.Interrupted {
		t.Errorf("error is %v (%s), want that the wait was interrupted", err, failure.ClassOf(err))
	}
	closeNow(t, f)
	open(t, e, waiting)
}

func TestLookupAddsImportBlocks(t *testing.T) {
	e, backend := newEngine(t), newBackend(t)
	prepare(t, e, Module{Digest: "lookup", Files: files(map[string]string{
		"main.tf":             `resource "terraform_data" "this" {}`,
		"lookup/import.tf":    "import {\n  to = terraform_data.this\n  id = \"found-1\"\n}\n",
		"tests/x.tftest.hcl":  "not HCL {",
		"examples/machine.tf": "not HCL {",
	})})
	plain := open(t, e, RunSpec{ID: "plain", Module: "lookup", Backend: backend.at("m")})
	if report := plan(t, plain, PlanOptions{}); report.Planned.Add != 1 || report.Planned.Import != 0 {
		t.Errorf("without lookup the plan is %+v, want a create", report.Planned)
	}
	closeNow(t, plain)
	lookup := open(t, e, RunSpec{ID: "lookup", Module: "lookup", Search: engine.SearchLookup, Backend: backend.at("m")})
	if report := plan(t, lookup, PlanOptions{}); report.Planned.Import != 1 || report.Planned.Add != 0 || !report.CreatesOnly() {
		t.Errorf("with lookup the plan is %+v, want an import", report.Planned)
	}
}

func TestTheSameFailureHasTheSameTextInEachRun(t *testing.T) {
	e, backend := newEngine(t), newBackend(t)
	prepare(t, e, moduleOf("paths", `
variable "size" {
  default = "huge"
}
resource "terraform_data" "this" {
  lifecycle {
    precondition {
      condition     = var.size != "huge"
      error_message = "${abspath("missing.txt")} and ${abspath(path.module)} are not what they should be."
    }
  }
}`))
	var texts []string
	for _, id := range []string{"first-5e0b", "second-91f4"} {
		var printed []string
		f := open(t, e, RunSpec{ID: id, Module: "paths", Backend: backend.at(id), Output: func(text string) { printed = append(printed, text) }})
		_, err := f.Apply(t.Context())
		if err == nil {
			t.Fatal("the module did not fail")
		}
		texts = append(texts, err.Error())
		for _, text := range append(printed, err.Error()) {
			if strings.Contains(text, string(e.dir)) || strings.Contains(text, id) {
				t.Errorf("a text shows the run's folder: %s", text)
			}
		}
		closeNow(t, f)
	}
	if want := "missing.txt and . are not what they should be."; texts[0] != texts[1] || !strings.Contains(texts[0], want) {
		t.Errorf("two runs fail with %q and %q, want both with %q", texts[0], texts[1], want)
	}
}
