package tofu

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"

	"github.com/machine-iac/machine-iac-operator/internal/engine/workdir"
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

func TestARunWithFilesHasNoWarmProvider(t *testing.T) {
	e := newEngine(t, func(o *Options) {
		o.ProviderMirror = mirrorForTests(t)
		o.Warm.Max = 1
	})
	prepare(t, e, objectModule(objectLock+"}\n"))
	f := open(t, e, RunSpec{ID: "r", Module: "object", Backend: newBackend(t).at("m"), Variables: []byte(`{"name":"x"}`), Files: map[string]string{"CLOUDS": clouds}})
	if report := plan(t, f, PlanOptions{Out: true}); report.Planned.Add != 1 {
		t.Errorf("plan is %+v, want one create", report.Planned)
	}
	if f.lease != nil {
		t.Errorf("the run has %d warm providers, which keep the paths of its files", len(f.lease.Reattach()))
	}
	closeNow(t, f)
}
