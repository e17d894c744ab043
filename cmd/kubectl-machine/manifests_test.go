package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/test/golden"
	"github.com/machine-iac/machine-iac-operator/test/long"
)

// manifestInfrastructure is the file of a folder of manifests that has the cluster's Infrastructure.
const manifestInfrastructure = "infrastructure.yaml"

// TestManifests plans each manifest of test/manifests, and compares what a user sees with the file beside it. A folder is a platform, with
// the Infrastructure of the cluster that its manifests are written for.
func TestManifests(t *testing.T) {
	long.Test(t)
	t.Parallel()
	infrastructures, err := filepath.Glob(repository(t, "test", "manifests", "*", manifestInfrastructure))
	if err != nil || len(infrastructures) == 0 {
		t.Fatalf("want folders of manifests, got %v, %v", infrastructures, err)
	}
	cache := t.TempDir()
	for _, infrastructure := range infrastructures {
		folder := filepath.Dir(infrastructure)
		t.Run(filepath.Base(folder), func(t *testing.T) {
			t.Parallel()
			cases, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
			if err != nil || len(cases) < 2 {
				t.Fatalf("want an Infrastructure and manifests, got %v, %v", cases, err)
			}
			for _, file := range cases {
				if filepath.Base(file) == manifestInfrastructure {
					continue
				}
				name := strings.TrimSuffix(filepath.Base(file), ".yaml")
				t.Run(name, func(t *testing.T) {
					golden.Check(t, strings.TrimSuffix(file, ".yaml")+".plan", planOf(t, folder, file, cache))
				})
			}
		})
	}
}

// planOf returns what `kubectl machine plan` prints for a manifest: the plan, then what goes to the standard error.
func planOf(t *testing.T, folder, file, cache string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	relative, err := filepath.Rel(repository(t), file)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"plan", "-f", file, "--cache-dir", cache, "--engine-path", realEngine(t)[1], "--provider-mirror", repository(t, "bin", "schemas")}
	// A manifest for another cluster has that cluster's Infrastructure in it.
	if !strings.Contains(string(content), "\nkind: Infrastructure\n") {
		args = append(args, "--infrastructure", filepath.Join(folder, manifestInfrastructure))
	}
	planned := runCommand(t, args...)
	return strings.ReplaceAll(planned.out+planned.err, file, filepath.ToSlash(relative))
}
