//go:build life

package life

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
)

// plainCost is the CPU time of a Machine's commands in a plain loop.
type plainCost struct{ Create, Check, Destroy time.Duration }

// plainLoop applies, plans and destroys a few Machines as a script would, in one initialised folder.
func (w *world) plainLoop(t *testing.T, program string, environment map[string]string) (mean plainCost) {
	t.Helper()
	dir := t.TempDir()
	// Not the lock file: the mirror's provider is built from source.
	files, err := filepath.Glob(w.lab.Path(w.platform.module, "*.tf"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(file)), []byte(w.read(file)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mirror := (&world{t: t, dir: dir, lab: w.lab, platform: w.platform}).mirror(program)
	rc := filepath.Join(dir, "cli.tfrc")
	if err := os.WriteFile(rc, fmt.Appendf(nil, "provider_installation {\n  filesystem_mirror {\n    path = %q\n  }\n}\n", mirror), 0o600); err != nil {
		t.Fatal(err)
	}
	variables := maps.Clone(environment)
	maps.Copy(variables, map[string]string{"HOME": dir, "PATH": os.Getenv("PATH"), "TF_CLI_CONFIG_FILE": rc, "TF_IN_AUTOMATION": "1", "CHECKPOINT_DISABLE": "1",
		"ARM_USE_CLI": "false", "ARM_USE_MSI": "false"})
	for key, value := range w.credentials.Data {
		variables[strings.ToUpper(strings.Replace(key, "azure_", "ARM_", 1))] = string(value)
	}
	run := func(arguments ...string) time.Duration {
		command := exec.CommandContext(t.Context(), w.lab.Path("bin", "tofu"), arguments...) //nolint:gosec // the repository's own engine
		command.Dir = dir
		for name, value := range variables {
			command.Env = append(command.Env, name+"="+value)
		}
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("tofu %s: %v\n%s", strings.Join(arguments, " "), err, out)
		}
		return command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	}
	run("init", "-input=false")
	for i := range plainMachines {
		name := fmt.Sprintf("plain-%d", i)
		raw, err := json.Marshal(map[string]any{
			"machine":       map[string]any{"name": name, "namespace": lab.Namespace, "uid": uuid.NewUUID(), "cluster_id": clusterID, "labels": map[string]string{}},
			"provider_spec": w.set.Spec.Template.Spec.ProviderSpec.Value,
			"user_data":     "{}",
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".tfvars.json"), raw, 0o600); err != nil {
			t.Fatal(err)
		}
		inputs := []string{"-input=false", "-no-color", "-state=" + name + ".tfstate", "-var-file=" + name + ".tfvars.json"}
		changing := append([]string{"-auto-approve"}, inputs...)
		mean.Create += run(append([]string{"apply"}, changing...)...) / plainMachines
		mean.Check += run(append([]string{"plan"}, inputs...)...) / plainMachines
		mean.Destroy += run(append([]string{"destroy"}, changing...)...) / plainMachines
	}
	return mean
}
