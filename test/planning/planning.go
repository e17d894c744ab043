// Package planning provides catalogs, requests, and planners with real engines for tests of previews. Paths are
// relative to a package below internal/plan.
package planning

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
	"github.com/machine-iac/machine-iac-operator/internal/engine/tofu"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/internal/plan/offline"
	"github.com/machine-iac/machine-iac-operator/internal/plan/preview"
)

// Catalog returns a catalog of a module in this repository, such as "modules/aws".
func Catalog(t testing.TB, folder string) *module.Catalog { return catalog(t, "../../../"+folder) }

// ExampleCatalog returns a catalog of the example module.
func ExampleCatalog(t testing.TB) *module.Catalog { return catalog(t, "../preview/testdata/modules") }

func catalog(t testing.TB, folder string) *module.Catalog {
	t.Helper()
	loaded, err := load.Folders(folder)
	if err != nil {
		t.Fatal(err)
	}
	made, err := module.NewCatalog(loaded...)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// Requests parses a file's content.
func Requests(t testing.TB, name, content string, catalog *module.Catalog) []*preview.Request {
	t.Helper()
	requests, _, err := preview.Read([]preview.File{{Name: name, Content: []byte(content)}},
		preview.Cluster{Namespace: "openshift-machine-api"}, catalog)
	if err != nil {
		t.Fatal(err)
	}
	return requests
}

// Machine returns a Machine of the example module as JSON.
func Machine(t testing.TB, metadata map[string]any) string {
	t.Helper()
	metadata["labels"] = map[string]any{"machine.openshift.io/cluster-api-cluster": "demo"}
	raw, err := json.Marshal(map[string]any{
		"apiVersion": "machine.openshift.io/v1beta1", "kind": preview.KindMachine, "metadata": metadata,
		"spec": map[string]any{"providerSpec": map[string]any{"value": map[string]any{
			"apiVersion": "example.com/v1", "kind": "ExampleProviderSpec",
			"credentialsSecret": map[string]any{"name": "c"},
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// Planner returns a planner with the engine and providers from `make tools`.
func Planner(t testing.TB) *offline.Planner {
	t.Helper()
	path := os.Getenv("TOFU")
	if path == "" {
		path = "../../../bin/tofu"
	}
	binary, err := tofu.Find(t.Context(), tofu.FindOptions{Path: path})
	if err != nil {
		t.Fatalf("%v; run 'make tools'", err)
	}
	confined, err := sandbox.New(sandbox.Options{Mode: sandbox.Preferred})
	if err != nil {
		t.Fatal(err)
	}
	planner, err := offline.New(offline.Options{
		Binary: binary, CacheDir: t.TempDir(), ProviderMirror: "../../../bin/schemas", Parallel: 2, Sandbox: confined,
	})
	if err != nil {
		t.Fatalf("%v; run 'make tools'", err)
	}
	t.Cleanup(func() {
		if err := planner.Close(); err != nil {
			t.Error(err)
		}
	})
	return planner
}
