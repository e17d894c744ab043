package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/test/long"
)

// newStack writes a built-in stack into a folder of its own and returns that folder's parent.
func newStack(t *testing.T, edits ...[3]string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "kubemark"), os.DirFS(repository(t, "stacks", "kubemark"))); err != nil {
		t.Fatal(err)
	}
	for _, edit := range edits {
		replaceIn(t, filepath.Join(dir, "kubemark", edit[0]), edit[1], edit[2])
	}
	return dir
}

func TestCheckTakesAStack(t *testing.T) {
	for name, tc := range map[string]struct {
		flags []string
		edits [][3]string
		want  string
	}{
		"its contract": {
			flags: []string{"--no-engine"},
			want:  "serves machine-iac.io/v1alpha1 PulumiMachineProviderSpec; providers: gavinbunney/kubectl 1.19.0; passed: contract\n",
		},
		"its HCL, by the engine": {
			flags: realEngine(t),
			want:  "passed: contract, fmt, init, validate; left out: program, test\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := newStack(t, tc.edits...)
			got := runCommand(t, append([]string{"module", "check", filepath.Join(dir, "kubemark")}, tc.flags...)...)
			if got.code != 0 || !strings.HasPrefix(got.out, "kubemark@sha256:") || !strings.HasSuffix(got.out, tc.want) {
				t.Errorf("exit code %d, want 0 and %q, got %q and %q", got.code, tc.want, got.out, got.err)
			}
		})
	}
}

func TestCheckRunsTheTestsThatAStackHas(t *testing.T) {
	long.Test(t)
	const test = `variables {
  machine       = { name = "m", namespace = "n", uid = "u", cluster_id = "c", labels = {} }
  provider_spec = { pods = 0, credentialsSecret = { name = "c" } }
  user_data     = ""
}

run "pods_are_positive" {
  command         = plan
  expect_failures = [var.provider_spec]
}
`
	dir := newStack(t)
	folder := filepath.Join(dir, "kubemark")
	if err := os.Mkdir(filepath.Join(folder, "tests"), 0o700); err != nil {
		t.Fatal(err)
	}
	replaceIn(t, filepath.Join(folder, "tests", "validations.tftest.hcl"), "", test)
	arguments := append([]string{"module", "check", folder}, realEngine(t)...)
	if got := runCommand(t, arguments...); got.code != 0 || !strings.HasSuffix(got.out, "passed: contract, fmt, init, validate, test; left out: program\n") {
		t.Errorf("exit code %d, got %q and %q", got.code, got.out, got.err)
	}
	replaceIn(t, filepath.Join(folder, "tests", "validations.tftest.hcl"), "pods = 0", "pods = 1")
	if got := runCommand(t, arguments...); got.code != 1 || !strings.Contains(got.out, "validations.tftest.hcl") {
		t.Errorf("exit code %d; want the test to fail, got %q and %q", got.code, got.out, got.err)
	}
}

func TestCheckNamesTheBreachesOfAStack(t *testing.T) {
	dir := newStack(t, [3]string{"module.yaml", "engine: Pulumi", "engine: Pulumo"})
	got := runCommand(t, "module", "check", filepath.Join(dir, "kubemark"), "--no-engine")
	if want := `kubemark/module.yaml:6: spec.engine is "Pulumo", which is not an engine`; got.code != 1 || !strings.Contains(got.out, want) {
		t.Errorf("exit code %d, want %q, got %q", got.code, want, got.out)
	}
}

func TestAStackAndAModuleOfOneNameAreCheckedTogether(t *testing.T) {
	dir := newStack(t)
	got := runCommand(t, "module", "check", filepath.Join(dir, "kubemark"), repository(t, "modules", "kubemark"), "--no-engine")
	if got.code != 0 || strings.Count(got.out, "kubemark@sha256:") != 2 {
		t.Errorf("exit code %d, got %q and %q", got.code, got.out, got.err)
	}
}

func TestAStackIsPacked(t *testing.T) {
	dir := newStack(t)
	archive := filepath.Join(t.TempDir(), "kubemark.tar.gz")
	packed := runCommand(t, "module", "pack", filepath.Join(dir, "kubemark"), "-o", archive)
	if packed.code != 0 {
		t.Fatalf("exit code %d: %s", packed.code, packed.err)
	}
	got := runCommand(t, "module", "check", strings.TrimSpace(packed.out), "--no-engine")
	if got.code != 0 || !strings.Contains(got.out, "PulumiMachineProviderSpec") {
		t.Errorf("exit code %d, got %q and %q", got.code, got.out, got.err)
	}
}
