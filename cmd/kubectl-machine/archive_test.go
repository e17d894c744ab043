package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/test/long"
)

// unpacked builds the archive of this platform, and returns the folder that it is unpacked into.
func unpacked(t *testing.T) string {
	t.Helper()
	dist, bin := t.TempDir(), t.TempDir()
	platform := runtime.GOOS + "/" + runtime.GOARCH
	build := exec.CommandContext(t.Context(), repository(t, "hack", "plugin-archives.sh"), "v1.2.3", platform)
	build.Env = append(os.Environ(), "DIST="+dist)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the archive: %v\n%s", err, out)
	}
	if _, err := os.Stat(filepath.Join(dist, "machine.yaml")); err == nil {
		t.Error("there is a manifest for krew with one platform's archive")
	}
	archive := filepath.Join(dist, "kubectl-machine-"+strings.ReplaceAll(platform, "/", "-")+".tar.gz")
	if out, err := exec.CommandContext(t.Context(), "tar", "-C", bin, "-xzf", archive).CombinedOutput(); err != nil {
		t.Fatalf("unpacking it: %v\n%s", err, out)
	}
	return bin
}

func TestTheArchivePlansBuiltInModulesWithoutANetwork(t *testing.T) {
	long.Test(t)
	bin := unpacked(t)
	engine := []string{"--engine-path", repository(t, "bin", "tofu"), "--cache-dir", t.TempDir()}
	examples, err := filepath.Glob(repository(t, "modules", "*", "examples", "machineset.yaml"))
	if err != nil || len(examples) < 8 {
		t.Fatalf("found the examples %q, %v", examples, err)
	}
	for _, example := range examples {
		plugin := filepath.Join(bin, "kubectl-machine")
		got := alone(t, "", append([]string{plugin, "plan", "-f", example}, engine...)...)
		if got.code != 0 || !strings.Contains(got.out, "Preview: 1 MachineSet") {
			t.Errorf("%s: it ends with %d, %q and\n%s", example, got.code, got.err, got.out)
		}
	}
}
