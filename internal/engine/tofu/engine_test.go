package tofu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-version"

	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/test/shortdir"
)

// scripted returns a CLI that initialises anything, and applies by a shell script.
func scripted(t *testing.T, apply string) Binary {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tofu")
	script := `#!/bin/sh
case $1 in
version) echo '{"terraform_version": "1.12.6"}' ;;
init) ;;
*)
` + apply + `
;;
esac
`
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return Binary{Path: path, Name: OpenTofu, Version: version.Must(version.NewVersion("1.12.6"))}
}

func TestKillEndsWhatTheEngineLeft(t *testing.T) {
	const stubborn = `
trap '' INT TERM
%s &
echo $! > plugin
echo '{"@level":"info","@message":"up","type":"version"}'
echo '{"@level":"info","type":"apply_start","hook":{"resource":{"addr":"x_vm.this"},"action":"create"}}'
while true; do sleep 0.1; done`
	plugins := map[string]string{
		"a plugin that keeps the engine's output open": "sleep 300",
		"a plugin with an output of its own":           "sleep 300 >/dev/null 2>&1",
	}
	for name, plugin := range plugins {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, func(o *Options) {
				o.Binary = scripted(t, fmt.Sprintf(stubborn, plugin))
				o.WaitDelay = 300 * time.Millisecond
			})
			prepare(t, e, moduleOf("m", ""))
			f, _, err := interruptAt(t, e, RunSpec{ID: "r", Module: "m", Backend: Backend{Address: "http://127.0.0.1:1"}}, "x_vm.this")
			if failure.ClassOf(err) != failure.Killed || !strings.Contains(err.Error(), "changes are unknown") {
				t.Errorf("error is %v (%s), want that the outcome is not known", err, failure.ClassOf(err))
			}
			content, err := os.ReadFile(filepath.Join(f.dir, "plugin"))
			if err != nil {
				t.Fatal(err)
			}
			if alive(t, strings.TrimSpace(string(content))) {
				t.Errorf("the plugin %s is still running", content)
			}
		})
	}
}

// alive reports whether a process runs and is no zombie.
func alive(t *testing.T, pid string) bool {
	t.Helper()
	status, err := os.ReadFile(filepath.Join("/proc", pid, "status"))
	if errors.Is(err, os.ErrNotExist) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	return !strings.Contains(string(status), "State:\tZ")
}

func TestEngineThatDies(t *testing.T) {
	const begin = `echo '{"@level":"info","@message":"up","type":"version"}'` + "\n"
	cases := map[string]struct {
		script    string
		wantClass failure.Class
		wantText  string
	}{
		"by a signal of somebody else": {script: begin + "kill -KILL $$", wantClass: failure.Killed, wantText: "signal"},
		"by a crash":                   {script: begin + "echo 'fatal error: out of memory' >&2; exit 2", wantClass: failure.Killed, wantText: "crashed"},
		"without a reason":             {script: begin + "exit 1", wantClass: failure.Unknown, wantText: "without an error message"},
		"with a plain text":            {script: begin + "echo 'Failed to read CLI arguments' >&2; exit 1", wantClass: failure.Unknown, wantText: "applying: Failed to read"},
		"as a plan that reports no changes": {
			script: begin + "case $1 in plan) exit 2;; esac; kill -KILL $$", wantClass: failure.Killed, wantText: "signal",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, func(o *Options) { o.Binary = scripted(t, tc.script) })
			prepare(t, e, moduleOf("m", ""))
			f := open(t, e, RunSpec{ID: "r", Module: "m", Backend: Backend{Address: "http://127.0.0.1:1"}})
			_, err := f.Apply(t.Context())
			if failure.ClassOf(err) != tc.wantClass {
				t.Errorf("class is %s, want %s", failure.ClassOf(err), tc.wantClass)
			}
			expectTexts(t, err, []string{tc.wantText})
		})
	}
}

func TestPlanThatCrashesIsNoPlan(t *testing.T) {
	e := newEngine(t, func(o *Options) { o.Binary = scripted(t, "echo 'fatal error: out of memory' >&2; exit 2") })
	prepare(t, e, moduleOf("m", ""))
	f := open(t, e, RunSpec{ID: "r", Module: "m", Backend: Backend{Address: "http://127.0.0.1:1"}})
	report, err := f.Plan(t.Context(), PlanOptions{})
	if err == nil || report.NoChange() || report.InPlaceOnly() {
		t.Errorf("plan returns %+v, %v, want an error and no decision", report, err)
	}
}

func TestStateDumpedIntoTheStream(t *testing.T) {
	const dumping = `echo '{"@level":"info","@message":"Emergency state dump","type":"log","state":{"version":4,"serial":7,"lineage":"l"}}'
echo '{"@level":"error","type":"diagnostic","diagnostic":{"severity":"error","summary":"Failed to persist state to backend"}}'
exit 1`
	e := newEngine(t, func(o *Options) { o.Binary = scripted(t, dumping) })
	prepare(t, e, moduleOf("m", ""))
	f := open(t, e, RunSpec{ID: "r", Module: "m", Backend: Backend{Address: "http://127.0.0.1:1"}})
	if _, err := f.Apply(t.Context()); failure.ClassOf(err) != failure.StateNotSaved {
		t.Errorf("error is %v (%s), want that the state was not saved", err, failure.ClassOf(err))
	}
	if state := f.ErroredState(); string(state) != `{"version":4,"serial":7,"lineage":"l"}` {
		t.Errorf("ErroredState = %s, want the dumped state", state)
	}
}

func TestSecondEngineInAFolderIsRefused(t *testing.T) {
	e := newEngine(t)
	options := e.options
	_, err := New(options)
	expectTexts(t, err, []string{string(e.dir), "another running engine"})
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	again, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestNewRefuses(t *testing.T) {
	binary := Binary{Path: "/bin/true", Name: OpenTofu, Version: version.Must(version.NewVersion("1.12.6"))}
	cases := map[string]struct {
		options Options
		want    string
	}{
		"no binary":                      {options: Options{WorkDir: "x"}, want: "Find"},
		"no work folder":                 {options: Options{Binary: binary}, want: "work folder"},
		"a path too long for sockets":    {options: Options{Binary: binary, WorkDir: filepath.Join(t.TempDir(), strings.Repeat("x", 80))}, want: "characters too long"},
		"a mirror that is not there":     {options: Options{Binary: binary, WorkDir: shortdir.New(t), ProviderMirror: "/nowhere"}, want: "/nowhere"},
		"an environment of the engine's": {options: Options{Binary: binary, WorkDir: "x", Environment: map[string]string{"TF_VAR_x": ""}}, want: "TF_VAR_x"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := New(tc.options)
			expectTexts(t, err, []string{tc.want})
		})
	}
}

func TestWorkFolderIsPrivate(t *testing.T) {
	dir := shortdir.New(t)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	newEngine(t, func(o *Options) { o.WorkDir = dir })
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o700 {
		t.Errorf("the work folder has mode %v, want 0700", info.Mode())
	}
}

func TestCloseWaitsForRuns(t *testing.T) {
	e, backend := newEngine(t), newBackend(t)
	prepare(t, e, moduleOf("instance", instance))
	f := open(t, e, RunSpec{ID: "r", Module: "instance", Backend: backend.at("m")})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	expectTexts(t, e.Close(ctx), []string{"1 of its runs"})
	if _, err := e.Open(t.Context(), RunSpec{ID: "s", Module: "instance", Backend: backend.at("m"), Variables: []byte("{}")}); err == nil {
		t.Error("an engine that is closing opens a run")
	}
	closeNow(t, f)
	if err := e.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestLeftovers makes a predecessor that dies in the middle of a run: its folder is copied as it is.
func TestLeftovers(t *testing.T) {
	e, backend := newEngine(t), newBackend(t)
	prepare(t, e, moduleOf("instance", instance))
	f := open(t, e, RunSpec{ID: "r-1", Identity: map[string]string{"uid": "u-1"}, Module: "instance", Backend: backend.at("m"),
		Variables: variables(t, map[string]any{"image": "one", "size": "small", "user_data": "hunter22"})})
	dir := shortdir.New(t)
	if err := os.CopyFS(filepath.Join(dir, "runs", "r-1"), os.DirFS(f.dir)); err != nil {
		// links are copied as links
		t.Fatal(err)
	}
	run := filepath.Join(dir, "runs", "r-1")
	if err := os.WriteFile(filepath.Join(run, erroredFile), []byte(`{"version":4}`), 0o600); err != nil {
		t.Fatal(err)
	}
	orphan := exec.Command("sleep", "300")
	orphan.Dir = run
	if err := orphan.Start(); err != nil {
		t.Fatal(err)
	}
	bystander := exec.Command("sleep", "300")
	bystander.Dir = dir
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = bystander.Process.Kill()
		_ = bystander.Wait()
		_ = orphan.Wait()
	})

	next := newEngine(t, func(o *Options) { o.WorkDir = dir })
	if alive(t, strconv.Itoa(orphan.Process.Pid)) {
		t.Error("the orphaned plugin is still running")
	}
	if !alive(t, strconv.Itoa(bystander.Process.Pid)) {
		t.Error("a process outside of the runs was ended")
	}
	leftovers := next.AbandonedRuns()
	if len(leftovers) != 1 {
		t.Fatalf("abandoned runs are %+v, want one", leftovers)
	}
	left := leftovers[0]
	if diff := cmp.Diff([]string{"r-1", "instance", `{"uid":"u-1"}`}, []string{left.ID, left.Module, string(left.Identity)}); diff != "" {
		t.Errorf("abandoned run (-want +got):\n%s", diff)
	}
	if state, err := left.ErroredState(); err != nil || string(state) != `{"version":4}` {
		t.Errorf("its errored state is %s, %v", state, err)
	}
	if exists(filepath.Join(run, variablesFile)) {
		t.Error("its secrets are still there")
	}
	prepare(t, next, moduleOf("instance", instance))
	_, err := next.Open(t.Context(), RunSpec{ID: "r-1", Module: "instance", Backend: backend.at("m"), Variables: []byte("{}")})
	expectTexts(t, err, []string{"not discarded"})
	if err := next.Discard("r-1"); err != nil {
		t.Fatal(err)
	}
	if len(next.AbandonedRuns()) != 0 || exists(run) {
		t.Error("a discarded run is still there")
	}
	open(t, next, RunSpec{ID: "r-1", Module: "instance", Backend: backend.at("m")})
}

func TestLockEndsWithItsProcess(t *testing.T) {
	if dir := os.Getenv("TOFU_TEST_HOLD"); dir != "" {
		if _, err := New(Options{Binary: Binary{Path: "/bin/true", Version: version.Must(version.NewVersion("1.12.6"))}, WorkDir: dir}); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("held")
		time.Sleep(time.Minute)
		return
	}
	dir := shortdir.New(t)
	holder := exec.Command(os.Args[0], "-test.run=^TestLockEndsWithItsProcess$", "-test.v")
	holder.Env = append(os.Environ(), "TOFU_TEST_HOLD="+dir)
	out := &safeText{}
	holder.Stdout = out
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	defer holder.Wait() //nolint:errcheck // it is killed
	eventually(t, "the other process holds the folder", func() bool { return strings.Contains(out.String(), "held") })
	options := Options{Binary: Binary{Path: "/bin/true", Version: version.Must(version.NewVersion("1.12.6"))}, WorkDir: dir}
	if _, err := New(options); err == nil {
		t.Error("a folder that another process holds is taken")
	}
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the folder is free", func() bool {
		e, err := New(options)
		if err != nil {
			return false
		}
		return e.Close(t.Context()) == nil
	})
}
