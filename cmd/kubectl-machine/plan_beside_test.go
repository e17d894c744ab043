package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/modules"
	"github.com/machine-iac/machine-iac-operator/test/long"
)

// beside puts the plugin into a folder with links to tools of the repository, and returns its path.
func beside(t *testing.T, tools ...string) string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range tools {
		if err := os.Symlink(repository(t, "bin", name), filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	return placePlugin(t, folder)
}

// TestPlanNeedsNoFlagsBesideItsTools plans the example of every built-in module with what `make plugin` puts beside the
// plugin, offline.
func TestPlanNeedsNoFlagsBesideItsTools(t *testing.T) {
	long.Test(t)
	examples, err := fs.Glob(modules.FS, "*/examples/machineset.yaml")
	if err != nil || len(examples) < 8 {
		t.Fatalf("got examples %v (%v), want those of 8 modules", examples, err)
	}
	// The mirror of a demo lacks most providers: schemas take precedence.
	plugin := beside(t, "tofu", "schemas", "mirror")
	for _, example := range examples {
		t.Run(strings.Split(example, "/")[0], func(t *testing.T) {
			got := alone(t, "", plugin, "plan", "-f", repository(t, "modules", filepath.FromSlash(example)))
			if got.code != 0 || got.err != "" || !strings.Contains(got.out, "Preview: 1 MachineSet, ") {
				t.Errorf("exit code %d, error %q, output\n%s", got.code, got.err, got.out)
			}
		})
	}
}

func TestPlanSaysWhatIsMissingAndHowToGetIt(t *testing.T) {
	platform := runtime.GOOS + "_" + runtime.GOARCH
	example := func(module string) string { return repository(t, "modules", module, "examples", "machineset.yaml") }
	withMirror := beside(t, "tofu")
	mirror := filepath.Join(filepath.Dir(withMirror), "mirror")
	if err := os.MkdirAll(filepath.Join(mirror, "registry.example", "hashicorp", "google", "0.1.0", platform), 0o700); err != nil {
		t.Fatal(err)
	}
	old := beside(t, "schemas")
	oldEngine := filepath.Join(filepath.Dir(old), "terraform")
	if err := os.WriteFile(oldEngine, []byte("#!/bin/sh\necho Terraform v1.5.7\n"), 0o700); err != nil { //nolint:gosec // executable
		t.Fatal(err)
	}
	const get = "; run 'make plugin' in the repository, or fill a folder with 'tofu providers mirror' " +
		"and name it with --provider-mirror\n"
	for name, tc := range map[string]struct {
		plugin  string
		modules []string
		want    []string
	}{
		"no provider": {
			plugin: withMirror, modules: []string{"aws"},
			want: []string{"missing providers in " + mirror + " for " + platform + ": hashicorp/aws 6.25.0 (module aws)" + get},
		},
		"another version, and two at once": {
			plugin: withMirror, modules: []string{"gcp", "kubemark"},
			want: []string{": hashicorp/google 7.45.0 (module gcp), gavinbunney/kubectl 1.19.0 (module kubemark)" + get},
		},
		"no engine": {
			plugin: beside(t, "schemas"), modules: []string{"aws"},
			want: []string{
				"no engine beside kubectl-machine: ",
				"; run 'make plugin' in the repository, install OpenTofu, or name its file with --engine-path\n",
			},
		},
		"an engine that is too old": {
			plugin: old, modules: []string{"aws"},
			want: []string{"finding the engine at " + oldEngine + ": it is version 1.5.7, but >= 1.9.0 is required"},
		},
		"no mirror, and no network": {
			plugin: beside(t, "tofu"), modules: []string{"aws"},
			want: []string{"hashicorp/aws", "\n" + strings.TrimPrefix(get, "; ")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			arguments := []string{"plan"}
			for _, module := range tc.modules {
				arguments = append(arguments, "-f", example(module))
			}
			script := strings.Replace(isolated, `"$@"`, `HOME="$PWD" "$@"`, 1)
			got := namespaced(t, script, nil, "", append([]string{tc.plugin}, arguments...)...)
			for _, want := range tc.want {
				if got.code != 1 || !strings.Contains(got.err, want) {
					t.Errorf("exit code %d, error %q, want %q", got.code, got.err, want)
				}
			}
		})
	}
}
