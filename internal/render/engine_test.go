package render

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"
)

// engine is an engine in the folder of a module without providers.
type engine struct {
	path, folder string
}

// newEngine returns an engine with an initialised module, or skips the test if there is none.
func newEngine(t *testing.T, files map[string]string) *engine {
	t.Helper()
	path := os.Getenv("TOFU")
	if path == "" {
		var err error
		if path, err = filepath.Abs("../../bin/tofu"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(path); err != nil {
		t.Skipf("%v; 'make tools' builds it", err)
	}
	e := &engine{path: path, folder: t.TempDir()}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(e.folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if output, err := e.run(t, "init", "-no-color"); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return e
}

func (e *engine) run(t *testing.T, args ...string) ([]byte, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, e.path, args...)
	command.Dir = e.folder
	command.Env = []string{"HOME=" + e.folder, "CHECKPOINT_DISABLE=1"}
	return command.CombinedOutput()
}

// accepts reports whether the engine can plan with the variables, and returns its message.
func (e *engine) accepts(t *testing.T, variables []byte) (accepted bool, message string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(e.folder, "input.tfvars.json"), variables, 0o600); err != nil {
		t.Fatal(err)
	}
	output, err := e.run(t, "plan", "-no-color", "-input=false", "-refresh=false", "-var-file=input.tfvars.json")
	if err != nil && !bytes.Contains(output, []byte("Error: ")) {
		t.Fatalf("%v\n%s", err, output)
	}
	return err == nil, string(output)
}

// hostile returns texts with a meaning in HCL, shells, templates or terminals.
func hostile() []string {
	return []string{
		"${file(\"/etc/passwd\")}", "%{ if true }x%{ endif }", "$${x}", "%%{x}", "$", "${", "%{", "\\${x}", "\\", "\\n",
		"\\u0000", "a\nb", "a\r\nb", "\t", "\"", "\\\"",
		"\"}\nresource \"null_resource\" \"x\" {}\n", "<<EOT\nx\nEOT", "#", "//", "/*", "*/", "-var=x", "--", "$(id)",
		"`id`", "' OR 1=1", "<&>", "{{ .x }}",
		"\x00", "\x1b[31m", "\x7f", "\u2028", "\u202e", "\ufeff", "\ufffd", "e\u0301", "é", "日本", "🙂", "null", "true",
		"1e3", "0x10", "Inf", "-0", " ", "",
		"{\"a\": 1}", "[1]", "var.user_data", "../../etc/passwd", strings.Repeat("${x}", 1<<10),
	}
}

// TestEngineTakesInputsForDataOnly renders hostile texts as values, elements, keys and user data, and compares them
// with the engine's outputs.
func TestEngineTakesInputsForDataOnly(t *testing.T) {
	texts := hostile()
	labels := map[string]string{}
	disks := []any{}
	for _, text := range texts {
		labels[cty.NormalizeString(text)] = text // two spellings of one key would be rejected
		disks = append(disks, map[string]any{"gib": 1, "type": text, "labels": map[string]string{"x" + text: text}})
	}
	spec := map[string]any{
		"apiVersion": "example.io/v1", "kind": "ExampleProviderSpec", "size": strings.Join(texts, "|"), "apiToken": 7,
		"labels": labels, "networks": texts, "disks": disks,
		"cpu": json.Number("9007199254740993"), "quota": json.Number("0.1"),
		"range":             []any{json.Number("1e308"), json.Number("-123456789012345678901234567890")},
		"credentialsSecret": map[string]any{"name": "c"},
	}
	raw, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	input := inputWith(t, string(raw))
	input.UserData = []byte(strings.Join(texts, "\n") + strings.Repeat("é", 1<<19))
	input.Machine.Labels = map[string]string{"${var.user_data}": "%{ for x in y }"}
	inputs, err := Render(input)
	if err != nil {
		t.Fatal(err)
	}
	variables, err := os.ReadFile("testdata/module/variables.tf")
	if err != nil {
		t.Fatal(err)
	}
	const outputs = `output "machine" {
  value = var.machine
}
output "provider_spec" {
  value = var.provider_spec
}
output "user_data" {
  value     = var.user_data
  sensitive = true
}
`
	e := newEngine(t, map[string]string{"variables.tf": string(variables), "outputs.tf": outputs,
		"input.tfvars.json": string(inputs.Variables)})
	if output, err := e.run(t, "apply", "-no-color", "-auto-approve", "-var-file=input.tfvars.json"); err != nil {
		t.Fatalf("%v\n%.2000s", err, output)
	}
	output, err := e.run(t, "output", "-json")
	if err != nil {
		t.Fatalf("%v\n%.2000s", err, output)
	}
	var got map[string]struct {
		Value json.RawMessage `json:"value"`
	}
	var want map[string]json.RawMessage
	if err := json.Unmarshal(output, &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(inputs.Variables, &want); err != nil {
		t.Fatal(err)
	}
	if len(want) != 3 {
		t.Fatalf("want three variables, got %d", len(want))
	}
	for name, wanted := range want {
		if problem := differ(name, decodeJSON(t, wanted), decodeJSON(t, got[name].Value)); problem != "" {
			t.Error(problem)
		}
	}
	if problem := equals("provider_spec", decodeJSON(t, raw),
		decodeJSON(t, got["provider_spec"].Value)); problem != "" {
		t.Errorf("what the engine has is not what the user wrote: %s", problem)
	}
}
