package modules_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/modules"
)

// TestModules runs the tests that each module brings along, with its providers mocked, and checks its formatting. It needs
// OpenTofu (bin/tofu, or the file that TOFU names) and the provider mirror bin/mirror, which 'make tools' builds.
func TestModules(t *testing.T) {
	tofu, mirror := tools(t)
	config := filepath.Join(t.TempDir(), "tofurc")
	mirrorOnly := fmt.Sprintf("provider_installation {\n  filesystem_mirror {\n    path = %q\n  }\n}\n", mirror)
	if err := os.WriteFile(config, []byte(mirrorOnly), 0o600); err != nil {
		t.Fatal(err)
	}
	entries, err := fs.ReadDir(modules.FS, ".")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		t.Run(entry.Name(), func(t *testing.T) {
			folder := t.TempDir()
			files, err := fs.Sub(modules.FS, entry.Name())
			if err != nil {
				t.Fatal(err)
			}
			if err := os.CopyFS(folder, files); err != nil {
				t.Fatal(err)
			}
			credentials := dummies(t, files)
			for _, args := range [][]string{{"fmt", "-check", "-diff", "-recursive"}, {"init", "-no-color"}, {"validate", "-no-color"}, {"test", "-no-color"}} {
				run(t, folder, config, credentials, tofu, args...)
			}
		})
	}
}

func tools(t *testing.T) (tofu, mirror string) {
	t.Helper()
	bin, err := filepath.Abs("../bin")
	if err != nil {
		t.Fatal(err)
	}
	tofu, mirror = os.Getenv("TOFU"), filepath.Join(bin, "mirror")
	if tofu == "" {
		tofu = filepath.Join(bin, "tofu")
	}
	for _, path := range []string{tofu, mirror} {
		if _, err := os.Stat(path); err != nil {
			t.Skipf("%v; 'make tools' builds it", err)
		}
	}
	return tofu, mirror
}

// dummies sets whatever the module reads from its credentials: providers want to be configured before anything is validated.
func dummies(t *testing.T, files fs.FS) []string {
	t.Helper()
	content, err := fs.ReadFile(files, "module.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var described struct {
		Spec struct {
			Credentials struct {
				Keys []struct {
					Env string `json:"env"`
				} `json:"keys"`
			} `json:"credentials"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(content, &described); err != nil {
		t.Fatal(err)
	}
	var environment []string
	for _, key := range described.Spec.Credentials.Keys {
		environment = append(environment, key.Env+"=dummy")
	}
	return environment
}

func run(t *testing.T, folder, config string, credentials []string, tofu string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, tofu, args...)
	command.Dir = folder
	// An environment of its own: nothing of the caller's credentials or TF_* settings.
	command.Env = append([]string{"HOME=" + folder, "PATH=" + os.Getenv("PATH"), "TF_CLI_CONFIG_FILE=" + config, "CHECKPOINT_DISABLE=1"}, credentials...)
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("tofu %v: %v\n%s", args, err, output)
	}
}
