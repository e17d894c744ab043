package state

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/test/long"
)

const configuration = `
terraform {
  encryption {
    key_provider "pbkdf2" %q {
      passphrase = %q
    }
    method "aes_gcm" "this" {
      keys = key_provider.pbkdf2.%s
    }
    state {
      method   = method.aes_gcm.this
      enforced = true
    }
  }
}
resource "terraform_data" "this" {
  input = %q
}
`

// engine is an OpenTofu with its own encryption and a local state.
type engine struct {
	t              *testing.T
	binary, folder string
}

func newEngine(t *testing.T, provider, passphrase, input string) *engine {
	t.Helper()
	binary, err := filepath.Abs(cmp.Or(os.Getenv("TOFU"), filepath.Join("..", "..", "..", "bin", "tofu")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(binary); err != nil {
		t.Skipf("%v; run 'make tools'", err)
	}
	e := &engine{t: t, binary: binary, folder: t.TempDir()}
	e.write("main.tf", fmt.Sprintf(configuration, provider, passphrase, provider, input))
	e.run("init", "-no-color", "-input=false")
	return e
}

func (e *engine) write(name, content string) {
	e.t.Helper()
	if err := os.WriteFile(filepath.Join(e.folder, name), []byte(content), 0o600); err != nil {
		e.t.Fatal(err)
	}
}

func (e *engine) run(arguments ...string) string {
	e.t.Helper()
	command := exec.CommandContext(e.t.Context(), e.binary, arguments...)
	command.Dir, command.Env = e.folder, []string{"HOME=" + e.folder, "TF_IN_AUTOMATION=1"}
	output, err := command.CombinedOutput()
	if err != nil {
		e.t.Fatalf("tofu %s: %v\n%s", arguments[0], err, output)
	}
	return string(output)
}

func (e *engine) state() []byte {
	e.t.Helper()
	raw, err := os.ReadFile(filepath.Join(e.folder, "terraform.tfstate"))
	if err != nil {
		e.t.Fatal(err)
	}
	return raw
}

func TestWhatOpenTofuEncryptsIsRead(t *testing.T) {
	keys := keysOf(t, "k")
	e := newEngine(t, "of_a_person", strings.Repeat("k", 40), "correct horse")
	e.run("apply", "-no-color", "-input=false", "-auto-approve")
	if !IsEncrypted(e.state()) || strings.Contains(string(e.state()), "correct horse") {
		t.Fatalf("the engine has not encrypted its state: %s", e.state())
	}
	content, first, err := keys.Decrypt(e.state())
	if err != nil || !first || !strings.Contains(string(content), "correct horse") ||
		!strings.Contains(string(content), `"terraform_version"`) {
		t.Errorf("got %s, %v, %v", content, first, err)
	}
}

func TestOpenTofuReadsWhatIsEncrypted(t *testing.T) {
	long.Test(t)
	const plain = `{"version":4,"terraform_version":"1.9.0","serial":7,"lineage":"l","outputs":{},"resources":[{"mode":"managed","type":"terraform_data","name":"this",
		"provider":"provider[\"terraform.io/builtin/terraform\"]","instances":[{"schema_version":0,"attributes":{"id":"the-id","input":{"value":"correct horse","type":"string"},
		"output":{"value":"correct horse","type":"string"},"triggers_replace":null}}]}],"check_results":null}`
	e := newEngine(t, keyProvider, strings.Repeat("k", 40), "correct horse")
	e.write("terraform.tfstate", string(encrypt(t, keysOf(t, "k"), plain)))
	if shown := e.run("show", "-no-color"); !strings.Contains(shown, `"the-id"`) ||
		!strings.Contains(shown, "correct horse") {
		t.Errorf("tofu show: %s", shown)
	}
	if pulled := e.run("state", "pull"); !strings.Contains(pulled, "correct horse") {
		t.Errorf("tofu state pull: %s", pulled)
	}
	if planned := e.run("plan", "-no-color", "-input=false"); !strings.Contains(planned, "No changes") {
		t.Errorf("tofu plan: %s", planned)
	}
}
