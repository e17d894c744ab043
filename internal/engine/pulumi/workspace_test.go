package pulumi

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/blang/semver"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/test/shortdir"
)

// newIdle returns an engine whose CLI is a shell script.
func newIdle(t *testing.T, script string, mods ...func(*Options)) *Engine {
	t.Helper()
	dir := shortdir.New(t)
	path := filepath.Join(dir, "pulumi")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nPATH=/usr/bin:/bin\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	options := Options{
		Binary: Binary{Path: path, Version: semver.MustParse("3.255.0")}, WorkDir: filepath.Join(dir, "work"), WaitDelay: 100 * time.Millisecond,
		Environment: map[string]string{"HTTPS_PROXY": "http://proxy"},
	}
	for _, mod := range mods {
		mod(&options)
	}
	e, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func idleRun(t *testing.T, mods ...func(*RunSpec)) RunSpec {
	t.Helper()
	key, err := theKey()
	if err != nil {
		t.Fatal(err)
	}
	r := RunSpec{
		ID: "r1", Project: "acme", Program: fstest.MapFS{"Pulumi.yaml": {Data: []byte("name: acme\n")}}, Key: key, Secret: []string{"user_data"},
		Variables: []byte(`{"machine":{"name":"${evil}"},"user_data":"hunter22"}`), Identity: map[string]string{"uid": "u1"},
		Environment: map[string]string{"ACME_TOKEN": "t0ken"}, Save: func(context.Context, []byte) error { return nil },
	}
	for _, mod := range mods {
		mod(&r)
	}
	return r
}

func TestARunIsRefusedWhenTheMirrorIsNotTheManifests(t *testing.T) {
	mirror := filepath.Join(t.TempDir(), "mirror")
	file := filepath.Join(mirror, "registry.opentofu.org/acme/cloud/1.0.0/linux_amd64/terraform-provider-cloud_v1.0.0")
	err := os.MkdirAll(filepath.Dir(file), 0o700)
	listed := strings.Repeat("0", 64) + "  " + filepath.Base(file) + "\n"
	for name, content := range map[string]string{file: "exchanged", mirror + ".sha256": listed} {
		if err == nil {
			err = os.WriteFile(name, []byte(content), 0o600)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	e := newIdle(t, "exit 1", func(o *Options) { o.ProviderMirror = mirror })
	_, err = e.Open(t.Context(), idleRun(t))
	if err == nil || !strings.Contains(err.Error(), "does not match") || failure.ClassOf(err) != failure.Unknown {
		t.Errorf("got %v, want that the provider is not the one that the manifest lists", err)
	}
}

func TestAWorkspaceHasWhatTheCLIReads(t *testing.T) {
	e := newIdle(t, "exit 1")
	workspace, err := e.Open(t.Context(), idleRun(t))
	if err != nil {
		t.Fatal(err)
	}
	if e.Starts() != 0 {
		t.Errorf("%d processes were started to open a run, want none", e.Starts())
	}
	raw, err := os.ReadFile(workspace.path("program", "Pulumi.machine.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var settings struct {
		Key    string                     `json:"secretsprovider"`
		Config map[string]json.RawMessage `json:"config"`
	}
	if err := json.Unmarshal(raw, &settings); err != nil {
		t.Fatal(err)
	}
	if settings.Key != serviceKey || string(settings.Config["acme:machine"]) != `{"name":"${evil}"}` {
		t.Errorf("settings are %s, want the key and variables as data", raw)
	}
	if !strings.HasPrefix(string(settings.Config["acme:user_data"]), `{"secure":"v1:`) || strings.Contains(string(raw), "hunter22") {
		t.Errorf("settings are %s, want the user data encrypted", raw)
	}
	if state, err := workspace.Checkpoint(); err != nil || string(state) != string(emptyCheckpoint("acme")) {
		t.Errorf("the checkpoint is %s, %v, want that of a stack that was never run", state, err)
	}
	if err := workspace.Close(); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{e.runs(), e.temporary()} {
		if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
			t.Errorf("%v are left in %s, %v", left, dir, err)
		}
	}
}

func TestTheEnvironmentIsBuilt(t *testing.T) {
	t.Setenv("PULUMI_ACCESS_TOKEN", "of the operator")
	t.Setenv("AWS_PROFILE", "of the operator")
	e := newIdle(t, `env > "$HOME/../../../env"; exit 1`)
	workspace, err := e.Open(t.Context(), idleRun(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := workspace.Destroy(t.Context()); err == nil {
		t.Fatal("the script fails, and Destroy does not")
	}
	raw, err := os.ReadFile(filepath.Join(e.dir, "env"))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for line := range strings.Lines(string(raw)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		got[name] = value
	}
	for name, want := range map[string]string{
		"ACME_TOKEN": "t0ken", "HTTPS_PROXY": "http://proxy", "PULUMI_BACKEND_URL": "file://" + workspace.path("backend"), "PULUMI_SKIP_UPDATE_CHECK": "true",
		"PULUMI_IGNORE_AMBIENT_PLUGINS": "true", "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true", "PULUMI_HOME": workspace.path("home"),
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	for _, name := range []string{"PULUMI_ACCESS_TOKEN", "AWS_PROFILE", "PULUMI_CONFIG_PASSPHRASE"} {
		if value, set := got[name]; set {
			t.Errorf("%s is %q, want nothing of the operator's own environment, and no passphrase", name, value)
		}
	}
}

func TestRunsThatCannotBe(t *testing.T) {
	cases := map[string]func(*RunSpec){
		"an id that leads elsewhere":             func(r *RunSpec) { r.ID = "../x" },
		"a project that leads elsewhere":         func(r *RunSpec) { r.Project = "../x" },
		"variables that are no object":           func(r *RunSpec) { r.Variables = []byte(`[]`) },
		"a secret that is no text":               func(r *RunSpec) { r.Secret = []string{"machine"} },
		"a checkpoint that is none":              func(r *RunSpec) { r.Checkpoint = []byte(`{}`) },
		"a variable of the engine's environment": func(r *RunSpec) { r.Environment = map[string]string{"PULUMI_HOME": "/x"} },
		"no Save":                                func(r *RunSpec) { r.Save = nil },
		"settings of a stack in the program": func(r *RunSpec) {
			r.Program = fstest.MapFS{"Pulumi.yaml": {}, "Pulumi.machine.yaml": {}}
		},
		"a lookup of a program that has none": func(r *RunSpec) { r.Search = engine.SearchLookup },
	}
	for name, mod := range cases {
		t.Run(name, func(t *testing.T) {
			e := newIdle(t, "exit 0")
			if _, err := e.Open(t.Context(), idleRun(t, mod)); err == nil {
				t.Fatal("it is opened, want an error")
			}
			if left, err := os.ReadDir(e.runs()); err != nil || len(left) != 0 {
				t.Errorf("%v are left, %v", left, err)
			}
		})
	}
}

func TestEndings(t *testing.T) {
	cases := map[string]struct {
		script    string
		cancelled bool
		want      failure.Class
		wantText  string
	}{
		"it says why it failed":             {script: `echo "error: quota exceeded for t0ken" >&2; exit 255`, want: failure.Quota, wantText: "quota exceeded for (sensitive)"},
		"it says what the module lists":     {script: `echo "error: no-such-flavor" >&2; exit 255`, want: failure.InvalidConfiguration, wantText: "no-such-flavor"},
		"a provider dies in a call":         {script: `echo "error: error reading from server: EOF" >&2; exit 255`, want: failure.Killed},
		"a provider does not start":         {script: `echo "error: could not read plugin [/p/x]: EOF" >&2; exit 255`, want: failure.Transient},
		"it fails without a word":           {script: `exit 1`, want: failure.Unknown, wantText: "without an error message"},
		"it is killed":                      {script: `kill -9 $$`, want: failure.Killed},
		"it ends in order when interrupted": {script: `trap 'exit 1' INT; touch "$HOME/../../../begun"; while :; do sleep 0.01; done`, cancelled: true, want: failure.Interrupted},
		"it does not end when interrupted":  {script: `trap '' INT; touch "$HOME/../../../begun"; while :; do sleep 0.01; done`, cancelled: true, want: failure.Killed},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newIdle(t, tc.script)
			workspace, err := e.Open(t.Context(), idleRun(t, func(r *RunSpec) {
				r.Sensitive, r.Final = []string{"t0ken"}, func(text string) bool { return strings.Contains(text, "no-such-flavor") }
			}))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tc.cancelled {
				go func() {
					for !exists(filepath.Join(e.dir, "begun")) && t.Context().Err() == nil {
						time.Sleep(time.Millisecond)
					}
					cancel()
				}()
			}
			_, err = workspace.Apply(ctx)
			if got := failure.ClassOf(err); got != tc.want {
				t.Errorf("Apply() = %v of class %s, want %s", err, got, tc.want)
			}
			if err == nil || !strings.Contains(err.Error(), tc.wantText) || strings.Contains(err.Error(), "t0ken") {
				t.Errorf("Apply() = %v, want %q in it and no secret", err, tc.wantText)
			}
		})
	}
}

func TestWhatTheCLIWritesBesideItsEventsIsShownWhereItFails(t *testing.T) {
	for name, tc := range map[string]struct {
		script string
		want   bool
	}{
		"it failed":    {`echo "no such thing" >&2; exit 255`, true},
		"it succeeded": {`echo "no such thing" >&2; exit 0`, false},
	} {
		t.Run(name, func(t *testing.T) {
			var printed []string
			e := newIdle(t, tc.script)
			workspace, err := e.Open(t.Context(), idleRun(t, func(r *RunSpec) { r.Output = func(text string) { printed = append(printed, text) } }))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := workspace.Apply(t.Context()); (err != nil) != tc.want {
				t.Fatalf("Apply: %v", err)
			}
			if got := strings.Contains(strings.Join(printed, "\n"), "no such thing"); got != tc.want {
				t.Errorf("the output is %q; the CLI's words in it: %t, want %t", printed, got, tc.want)
			}
		})
	}
}

// TestAPreviewThatDiesHasChangedNothing: what it did is known.
func TestAPreviewThatDiesHasChangedNothing(t *testing.T) {
	workspace, err := newIdle(t, `kill -9 $$`).Open(t.Context(), idleRun(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := workspace.Plan(t.Context()); failure.ClassOf(err) != failure.Transient {
		t.Errorf("Plan() = %v of class %s, want %s", err, failure.ClassOf(err), failure.Transient)
	}
}

// TestAPlanIsReadOnce: what a plan has read is read again only where a preview has left the checkpoint behind.
func TestAPlanIsReadOnce(t *testing.T) {
	small, big := map[string]any{"size": "small"}, map[string]any{"size": "big"}
	withInputs := refreshed(small)
	withInputs.ResOutputsEvent.Metadata.New.Inputs = big
	withSecret := refreshed(small)
	withSecret.ResOutputsEvent.Metadata.Diffs = []string{"token"}
	for name, tc := range map[string]struct {
		found apitype.EngineEvent
		want  bool
	}{
		"it found what the checkpoint has": {refreshed(small), false},
		"it found other values":            {refreshed(big), true},
		"it found other inputs":            {withInputs, true},
		"it found another secret":          {withSecret, true},
		"it found nothing":                 {refreshed(nil), true},
	} {
		t.Run(name, func(t *testing.T) {
			e := newIdle(t, `echo "$*" >>"$HOME/../../../calls"; case " $* " in *" preview "*) cat "$HOME/../../../events" >"$3" ;; *) : >"$3" ;; esac`)
			var events []byte
			for _, event := range []apitype.EngineEvent{tc.found, pre(apitype.OpUpdate), summary(map[apitype.OpType]int{apitype.OpUpdate: 1})} {
				line, err := json.Marshal(event)
				if err != nil {
					t.Fatal(err)
				}
				events = append(append(events, line...), '\n')
			}
			if err := os.WriteFile(filepath.Join(e.dir, "events"), events, 0o600); err != nil {
				t.Fatal(err)
			}
			workspace, err := e.Open(t.Context(), idleRun(t))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := workspace.Plan(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := workspace.ApplyPlan(t.Context()); err != nil {
				t.Fatal(err)
			}
			raw, err := os.ReadFile(filepath.Join(e.dir, "calls"))
			if err != nil {
				t.Fatal(err)
			}
			calls := strings.Split(strings.TrimSpace(string(raw)), "\n")
			if len(calls) != 2 || !strings.Contains(calls[0], "--refresh") || strings.Contains(calls[1], "--refresh") != tc.want {
				t.Errorf("the calls are\n%s\nwant the second to refresh: %t", raw, tc.want)
			}
		})
	}
}

func TestAMapThatPulumiTakesForASecretIsRefused(t *testing.T) {
	cases := map[string]struct{ variables, want string }{
		"in a field":                {`{"provider_spec":{"labels":{"secure":"yes"}}}`, "provider_spec.labels: "},
		"in a list":                 {`{"provider_spec":{"disks":[{"size":1},{"tags":{"secure":"yes"}}]}}`, "provider_spec.disks[1].tags: "},
		"the whole value":           {`{"provider_spec":{"secure":"yes"}}`, "provider_spec: "},
		"beside another key":        {`{"provider_spec":{"labels":{"secure":"yes","other":"no"}}}`, ""},
		"with what is no text":      {`{"provider_spec":{"labels":{"secure":true}}}`, ""},
		"a text that looks like it": {`{"provider_spec":{"label":"{\"secure\":\"yes\"}"}}`, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newIdle(t, "exit 0")
			workspace, err := e.Open(t.Context(), idleRun(t, func(r *RunSpec) { r.Variables, r.Secret = []byte(tc.variables), nil }))
			if tc.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				if err := workspace.Close(); err != nil {
					t.Fatal(err)
				}
				return
			}
			if failure.ClassOf(err) != failure.InvalidConfiguration || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Open() = %v of class %s, want an %s with %q", err, failure.ClassOf(err), failure.InvalidConfiguration, tc.want)
			}
		})
	}
}

func TestWhatACLILeavesBehindIsEnded(t *testing.T) {
	for name, tc := range map[string]struct{ script, end string }{
		"in its group, though it succeeded": {"sleep 300", "exit 0"},
		"in a group of its own":             {"setsid sleep 300", "exit 255"},
	} {
		t.Run(name, func(t *testing.T) {
			expectNothingLeft(t, tc.script+` >/dev/null 2>&1 & echo $! >"$HOME/../../../left"; `+tc.end)
		})
	}
}

func expectNothingLeft(t *testing.T, script string) {
	t.Helper()
	e := newIdle(t, script)
	workspace, err := e.Open(t.Context(), idleRun(t))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = workspace.Apply(t.Context()) // how it ends is no matter here
	raw, err := os.ReadFile(filepath.Join(e.dir, "left"))
	if err != nil {
		t.Fatal(err)
	}
	// Where nobody reaps it, its entry stays; its command line does not.
	name := filepath.Join("/proc", strings.TrimSpace(string(raw)), "cmdline")
	deadline := time.Now().Add(10 * time.Second)
	for {
		line, err := os.ReadFile(name)
		if err != nil || len(line) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%q is still running", line)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

func TestCommandsThatOnlyReadStartNothing(t *testing.T) {
	starts := &atomic.Int64{}
	c := &command{binary: Binary{Path: "/nonexistent"}, starts: starts}
	for _, args := range [][]string{{"stack", "select", "--stack", "machine"}, {"stack", "output", "--json"}, {"stack", "history", "--json"}} {
		if out, _, code, err := c.Run(t.Context(), "/", nil, nil, nil, nil, args...); err != nil || code != 0 || (out != "" && !json.Valid([]byte(out))) {
			t.Errorf("%v returns %q, %d, %v, want what the Automation API can read", args, out, code, err)
		}
	}
	if starts.Load() != 0 {
		t.Errorf("%d processes were started, want none", starts.Load())
	}
}

func TestFind(t *testing.T) {
	cases := map[string]struct{ script, want string }{
		"a version that is known": {script: "echo v3.255.0", want: ""},
		"one that is too old":     {script: "echo v3.100.0", want: "install 3.206.0 or later"},
		"what is no pulumi":       {script: "echo hello", want: "not a version of pulumi"},
		"what fails to say":       {script: "exit 1", want: "getting the version of"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "pulumi")
			if err := os.WriteFile(path, []byte("#!/bin/sh\n"+tc.script+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			_, err := Find(t.Context(), path)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Find() = %v, want %q", err, tc.want)
			}
		})
	}
}
