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

// unpacked builds the archive of a platform, and returns the folder that it is unpacked into.
func unpacked(t *testing.T, platform string) string {
	t.Helper()
	dist, bin := t.TempDir(), t.TempDir()
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

func TestTheArchiveOfARelease(t *testing.T) {
	long.Test(t)
	bin := unpacked(t, runtime.GOOS+"/"+runtime.GOARCH)

	t.Run("plans built-in modules with the engine on PATH, an empty HOME and no network", func(t *testing.T) {
		path := t.TempDir()
		if err := os.Symlink(repository(t, "bin", "tofu"), filepath.Join(path, "tofu")); err != nil {
			t.Fatal(err)
		}
		script := strings.Replace(isolated, `"$@"`, `HOME="$PWD" PATH="`+path+`" "$@"`, 1)
		examples, err := filepath.Glob(repository(t, "modules", "*", "examples", "machineset.yaml"))
		if err != nil || len(examples) < 8 {
			t.Fatalf("found the examples %q, %v", examples, err)
		}
		for _, example := range examples {
			got := namespaced(t, script, asked, "", filepath.Join(bin, "kubectl-machine"), "plan", "-f", example)
			if got.code != 0 || !strings.Contains(got.out, "Preview: 1 MachineSet") {
				t.Errorf("%s: it ends with %d, %q and\n%s", example, got.code, got.err, got.out)
			}
		}
	})

	t.Run("has kubectl complete its commands", func(t *testing.T) {
		complete := exec.CommandContext(t.Context(), repository(t, "bin", "kubectl"), "__complete", "machine", "pl")
		complete.Env = []string{"PATH=" + bin + ":/usr/bin:/bin"}
		got, err := complete.Output()
		if err != nil || !strings.HasPrefix(string(got), "plan\tShow what MachineSets and MachineDeployments would create") {
			t.Errorf("kubectl completes with %q, %v", got, err)
		}
	})
}

// Nothing runs the program for Windows: that it compiles is what the test shows.
func TestTheArchiveForWindowsHasAProgram(t *testing.T) {
	long.Test(t)
	content, err := os.ReadFile(filepath.Join(unpacked(t, "windows/amd64"), "kubectl-machine.exe"))
	if err != nil || !strings.HasPrefix(string(content), "MZ") {
		t.Errorf("got %.2q, %v; want a program", content, err)
	}
}
