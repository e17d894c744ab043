package render

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write testdata/golden/*.output.yaml anew")

// goldenInput is the content of a testdata/golden/*.input.yaml.
type goldenInput struct {
	Machine            machinev1beta1.Machine `json:"machine"`
	UserData           string                 `json:"userData,omitempty"`
	Credentials        map[string]string      `json:"credentials,omitempty"`
	CredentialsVersion string                 `json:"credentialsVersion,omitempty"`
}

// goldenOutput is the content of a testdata/golden/*.output.yaml.
type goldenOutput struct {
	Variables   string            `json:"variables,omitempty"`
	Environment map[string]string `json:"environment,omitempty"`
	Sensitive   []string          `json:"sensitive,omitempty"`
	Hash        string            `json:"hash,omitempty"`
	Warnings    []string          `json:"warnings,omitempty"`
	Errors      []string          `json:"errors,omitempty"`
}

func TestGolden(t *testing.T) {
	paths, err := filepath.Glob("testdata/golden/*.input.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("want golden inputs, got %v, %v", paths, err)
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".input.yaml")
		t.Run(name, func(t *testing.T) {
			outputPath := strings.Replace(path, ".input.yaml", ".output.yaml", 1)
			got := renderGolden(t, path)
			if *update {
				if err := os.WriteFile(outputPath, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(outputPath)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("run with -update and read the change (-want +got):\n%s", diff)
			}
		})
	}
}

func renderGolden(t *testing.T, path string) []byte {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var golden goldenInput
	if err := yaml.UnmarshalStrict(raw, &golden); err != nil {
		t.Fatal(err)
	}
	input := Input{
		Machine: &golden.Machine, ClusterID: "demo", Module: exampleModule(t), UserData: []byte(golden.UserData),
		Credentials: map[string][]byte{}, CredentialsVersion: golden.CredentialsVersion,
	}
	for key, value := range golden.Credentials {
		input.Credentials[key] = []byte(value)
	}
	inputs, err := Render(input)
	var output goldenOutput
	var failed Errors
	switch {
	case errors.As(err, &failed):
		for _, one := range failed {
			output.Errors = append(output.Errors, one.Error())
		}
	case err != nil:
		t.Fatal(err)
	default:
		output = goldenOutput{Environment: inputs.Environment, Sensitive: inputs.Sensitive, Hash: inputs.Hash}
		output.Variables = indent(t, inputs.Variables)
		for _, warning := range inputs.Warnings {
			output.Warnings = append(output.Warnings, warning.String())
		}
	}
	text, err := yaml.Marshal(output)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// indent makes JSON readable without changing numbers.
func indent(t *testing.T, raw []byte) string {
	t.Helper()
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(json.RawMessage(raw)); err != nil {
		t.Fatal(err)
	}
	return text.String()
}
