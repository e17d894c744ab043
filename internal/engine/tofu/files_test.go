package tofu

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machine-iac/machine-iac-operator/internal/engine/provider"
	"github.com/machine-iac/machine-iac-operator/internal/engine/workdir"
	"github.com/machine-iac/machine-iac-operator/test/shortdir"
)

// reading copies what a provider would read, so that tests see it.
const reading = `
variable "user_data" { default = "" }
resource "terraform_data" "this" {
  provisioner "local-exec" { command = "echo $CLOUDS > path; cat $CLOUDS; exit 1" }
}`

const clouds = "clouds:\n  openstack:\n    auth:\n      username: worker\n      password: hunter22\n"

func TestARunHasItsFilesAndLeavesNone(t *testing.T) {
	e, backend := newEngine(t), newBackend(t)
	prepare(t, e, moduleOf("reading", reading))
	f := open(t, e, RunSpec{ID: "r", Module: "reading", Backend: backend.at("m"), Variables: []byte("{}"),
		Files: map[string]string{"CLOUDS": clouds}, Sensitive: []string{clouds}})
	report, err := f.Apply(t.Context())
	if err == nil || strings.Contains(err.Error(), "hunter22") || len(report.Applied) > 0 {
		t.Errorf("the run ends with %v, %+v; want it to fail without the password", err, report)
	}
	written, err := os.ReadFile(filepath.Join(f.dir, "path"))
	if err != nil {
		t.Fatal(err)
	}
	path := strings.TrimSpace(string(written))
	content, err := os.ReadFile(path)
	if err != nil || string(content) != clouds {
		t.Errorf("the file %s is %q, %v; want what the run was given", path, content, err)
	}
	for name, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, %v; want %v", name, info.Mode(), err, want)
		}
	}
	closeNow(t, f)
	for _, name := range tree(t, string(e.dir)) {
		if content, err := os.ReadFile(name); err == nil && strings.Contains(string(content), "hunter22") {
			t.Errorf("%s is left", name)
		}
	}
}

func TestAFolderThatIsKeptHasNoFiles(t *testing.T) {
	e, backend := newEngine(t), newBackend(t)
	prepare(t, e, moduleOf("reading", reading))
	f := open(t, e, RunSpec{ID: "r", Module: "reading", Backend: backend.at("m"), Variables: []byte("{}"), Files: map[string]string{"CLOUDS": clouds}})
	if err := f.Keep(); err != nil {
		t.Fatal(err)
	}
	if exists(filepath.Join(f.dir, workdir.FilesDir)) {
		t.Error("a folder that is kept has the files of its run")
	}
}

func TestFilesOfARunThatDiedAreRemoved(t *testing.T) {
	runs := t.TempDir()
	secret := filepath.Join(runs, "r", workdir.FilesDir, "CLOUDS")
	if err := os.MkdirAll(filepath.Dir(secret), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(secret, []byte(clouds), 0o600); err != nil {
		t.Fatal(err)
	}
	if left, err := readAbandonedRuns(runs, logr.Discard()); err != nil || len(left) != 1 {
		t.Errorf("abandoned runs %v, %v; want one", left, err)
	}
	if exists(filepath.Dir(secret)) {
		t.Error("the file is there still")
	}
}

// secretOf returns the path and the content of the file that a warm provider has as CLOUDS.
func secretOf(t *testing.T, pid int) (path, content string) {
	t.Helper()
	environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut("\x00"+string(environment), "\x00CLOUDS=")
	path, _, _ = strings.Cut(after, "\x00")
	read, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("the provider's CLOUDS is %q: %v", path, err)
	}
	return path, string(read)
}

func TestAWarmProviderKeepsItsCredentialFilesUntilItEnds(t *testing.T) {
	now := clocktesting.NewFakeClock(time.Now())
	e := newEngine(t, func(o *Options) {
		o.ProviderMirror, o.Warm = mirrorForTests(t), provider.Options{Max: 2, IdleTTL: time.Minute, Clock: now}
	})
	prepare(t, e, objectModule(objectLock+"}\n"))
	backend, count := newBackend(t), 0
	use := func(content string) (pid int, path string) {
		t.Helper()
		count++
		f := open(t, e, RunSpec{ID: fmt.Sprint("r-", count), Module: "object", Backend: backend.at("m"), Variables: []byte(`{"name":"x"}`),
			Files: map[string]string{"CLOUDS": content}, Credentials: "ns/secret"})
		defer closeNow(t, f)
		pid = warmPID(t, f)
		path, has := secretOf(t, pid)
		if has != content || !strings.HasPrefix(path, e.dir.providers()+"/") {
			t.Errorf("the provider has %q in %s, want %q in a folder of its own", has, path, content)
		}
		return pid, path
	}
	first, path := use(clouds)
	if again, same := use(clouds); again != first || same != path {
		t.Errorf("the second run has the provider %d with %s, want %d with %s again", again, same, first, path)
	}
	other, otherPath := use(clouds + "\n")
	if other == first {
		t.Error("other credentials in the file have the same provider")
	}
	gone := func(when, path string) {
		t.Helper()
		for deadline := time.Now().Add(10 * time.Second); exists(path); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: %s is left", when, path)
			}
		}
	}
	gone("after the credentials were replaced", path)
	now.Step(time.Minute)
	gone("after a minute without a run", otherPath)
	_, last := use(clouds)
	if err := e.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if exists(last) {
		t.Errorf("%s is left after the engine was closed", last)
	}
}

// kubeconfig leads to a port where nothing listens.
const kubeconfig = `{apiVersion: v1, kind: Config, current-context: c,
contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: "https://127.0.0.1:2"}}], users: [{name: u, user: {token: hunter22}}]}`

func TestAConfinedWarmProviderReadsItsCredentialFile(t *testing.T) {
	e := newEngine(t, func(o *Options) { o.ProviderMirror, o.Warm.Max = mirrorForTests(t), 1 })
	signsIn := strings.Replace(object, "  host             = \"https://127.0.0.1:1\"\n  load_config_file = false\n", "", 1)
	prepare(t, e, Module{Digest: "object", Files: files(map[string]string{"main.tf": signsIn, lockFile: objectLock + "}\n"})})
	f := open(t, e, RunSpec{ID: "r", Module: "object", Backend: newBackend(t).at("m"), Variables: []byte(`{"name":"x"}`),
		Files: map[string]string{"KUBE_CONFIG_PATH": kubeconfig}})
	warmPID(t, f)
	if _, err := f.Apply(t.Context()); err == nil || !strings.Contains(err.Error(), "127.0.0.1:2") {
		t.Errorf("the run ends with %v, want the address in the file", err)
	}
	closeNow(t, f)
}

func TestCredentialFilesOfAKilledManagersProvidersAreRemoved(t *testing.T) {
	warm := func(o *Options) { o.ProviderMirror, o.Warm.Max = mirrorForTests(t), 1 }
	e := newEngine(t, warm)
	prepare(t, e, objectModule(objectLock+"}\n"))
	f := open(t, e, RunSpec{ID: "r", Module: "object", Backend: newBackend(t).at("m"), Variables: []byte(`{"name":"x"}`),
		Files: map[string]string{"CLOUDS": clouds}})
	path, _ := secretOf(t, warmPID(t, f))
	closeNow(t, f)
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(clouds), 0o600); err != nil { // as a manager leaves it that is killed
		t.Fatal(err)
	}
	newEngine(t, warm, func(o *Options) { o.WorkDir = e.options.WorkDir })
	if exists(path) {
		t.Errorf("%s is left", path)
	}
}

func TestWhatAPredecessorsProvidersHadIsRemoved(t *testing.T) {
	for name, warm := range map[string]int{"with warm providers": 1, "without": 0} {
		t.Run(name, func(t *testing.T) {
			dir := shortdir.New(t)
			secret := filepath.Join(dir, "providers", "1", workdir.FilesDir, "CLOUDS")
			if err := os.MkdirAll(filepath.Dir(secret), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(secret, []byte("password"), 0o600); err != nil {
				t.Fatal(err)
			}
			newEngine(t, func(o *Options) { o.WorkDir, o.Warm.Max = dir, warm })
			if exists(secret) {
				t.Errorf("%s is left of a manager that was killed", secret)
			}
		})
	}
}
