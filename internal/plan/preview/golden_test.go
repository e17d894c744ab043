package preview_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/plan/preview"
	"github.com/machine-iac/machine-iac-operator/test/golden"
	"github.com/machine-iac/machine-iac-operator/test/planning"
)

// extensions are the golden files' extensions by format.
var extensions = map[string]string{"": "txt", "json": "json", "yaml": "yaml", "markdown": "md"}

// TestGolden plans manifests with the real engine and provider.
func TestGolden(t *testing.T) {
	catalog, planner := planning.ExampleCatalog(t), planning.Planner(t)
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
		requests := planning.Requests(t, name+".yaml", string(content), catalog)
		result, err := preview.Plan(t.Context(), requests, planner, "tofu")
		if err != nil {
			t.Fatal(err)
		}
		for format, extension := range extensions {
			t.Run(name+"."+extension, func(t *testing.T) {
				var out strings.Builder
				if err := preview.Print(&out, result, format, false); err != nil {
					t.Fatal(err)
				}
				if strings.Contains(out.String(), "t0p-secret") {
					t.Errorf("it shows a secret:\n%s", out.String())
				}
				golden.Check(t, "testdata/golden/"+name+"."+extension, out.String())
			})
		}
	}
}
