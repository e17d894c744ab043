package preview

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/engine/tofu"
	"github.com/machine-iac/machine-iac-operator/internal/plan/offline"
)

// extensions are those of the golden files, by format.
var extensions = map[string]string{"": "txt", "json": "json", "yaml": "yaml", "markdown": "md"}

// realPlanner answers a planner with the engine and the providers that `make tools` built.
func realPlanner(t testing.TB) *offline.Planner {
	t.Helper()
	path := os.Getenv("TOFU")
	if path == "" {
		path = "../../../bin/tofu"
	}
	binary, err := tofu.Find(t.Context(), tofu.FindOptions{Path: path})
	if err != nil {
		t.Fatalf("%v; run 'make tools'", err)
	}
	planner, err := offline.New(offline.Options{Binary: binary, CacheDir: t.TempDir(), ProviderMirror: "../../../bin/mirror", Parallel: 2})
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

// TestGolden plans manifests with the real engine and provider.
func TestGolden(t *testing.T) {
	catalog, planner := exampleCatalog(t), realPlanner(t)
	inputs, err := filepath.Glob("testdata/golden/*.input.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("want golden inputs, got %v, %v", inputs, err)
	}
	for _, input := range inputs {
		name := strings.TrimSuffix(filepath.Base(input), ".input.yaml")
		content, err := os.ReadFile(input)
		if err != nil {
			t.Fatal(err)
		}
		requests, _ := requestsOf(t, name+".yaml", string(content), catalog)
		result, err := Plan(t.Context(), requests, planner, "tofu")
		if err != nil {
			t.Fatal(err)
		}
		for format, extension := range extensions {
			t.Run(name+"."+extension, func(t *testing.T) {
				var out strings.Builder
				if err := result.Print(&out, format, false); err != nil {
					t.Fatal(err)
				}
				if strings.Contains(out.String(), "t0p-secret") {
					t.Errorf("it shows a secret:\n%s", out.String())
				}
				golden(t, "testdata/golden/"+name+"."+extension, out.String())
			})
		}
	}
}
