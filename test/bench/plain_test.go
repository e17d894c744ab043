//go:build bench

package bench

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/modules"
)

// plain is what a script would do: one initialised folder, a state file for each Machine, `tofu apply` and `tofu destroy`.
type plain struct {
	dir         string
	tofu        string
	environment []string
}

func newPlain(t *testing.T, l *lab.Lab) *plain {
	t.Helper()
	p := &plain{dir: t.TempDir(), tofu: l.Path("bin", "tofu")}
	module, err := fs.Sub(modules.FS, "kubemark")
	if err != nil {
		t.Fatal(err)
	}
	// Not the lock file: the mirror's provider is built from source.
	for _, name := range []string{"main.tf", "outputs.tf", "terraform.tf", "variables.tf"} {
		content, err := fs.ReadFile(module, name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(p.dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	config := fmt.Sprintf("provider_installation {\n  filesystem_mirror {\n    path = %q\n  }\n}\n", l.Path("bin", "mirror"))
	rc := filepath.Join(p.dir, "cli.tfrc")
	if err := os.WriteFile(rc, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p.environment = []string{
		"HOME=" + p.dir, "PATH=" + os.Getenv("PATH"), "TF_CLI_CONFIG_FILE=" + rc, "TF_IN_AUTOMATION=1", "CHECKPOINT_DISABLE=1",
		"KUBE_LOAD_CONFIG_FILE=false", "KUBE_HOST=" + secret(t, l, "server"), "KUBE_TOKEN=" + secret(t, l, "token"),
		"KUBE_CLUSTER_CA_CERT_DATA=" + secret(t, l, `ca\.crt`),
	}
	if _, err := p.run(contextOf(t), "init", "-input=false"); err != nil {
		t.Fatal(err)
	}
	return p
}

func secret(t *testing.T, l *lab.Lab, key string) string {
	t.Helper()
	encoded, err := l.Kubectl(contextOf(t), "get", "secret", "kubemark-credentials", "-o", "jsonpath={.data."+key+"}")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// run returns the CPU time of the command and of all that it started.
func (p *plain) run(ctx context.Context, arguments ...string) (time.Duration, error) {
	command := exec.CommandContext(ctx, p.tofu, arguments...)
	command.Dir, command.Env = p.dir, p.environment
	out, err := command.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("tofu %s: %w\n%s", strings.Join(arguments, " "), err, out)
	}
	return command.ProcessState.UserTime() + command.ProcessState.SystemTime(), nil
}

// all applies or destroys every Machine, so many at a time.
func (p *plain) all(t *testing.T, verb string, names []string, parallel int) cost {
	t.Helper()
	started := time.Now()
	spent := make(chan time.Duration, len(names))
	group, ctx := errgroup.WithContext(contextOf(t))
	group.SetLimit(parallel)
	for _, name := range names {
		group.Go(func() error {
			arguments := []string{verb, "-input=false", "-no-color", "-state=" + name + ".tfstate", "-var-file=" + name + ".tfvars.json"}
			if verb != "plan" {
				arguments = append(arguments, "-auto-approve")
			}
			cpu, err := p.run(ctx, arguments...)
			spent <- cpu
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	close(spent)
	c := cost{wall: time.Since(started), starts: float64(len(names))}
	for cpu := range spent {
		c.cpu += cpu
	}
	return c
}

// names makes the inputs of so many Machines, the same that the MachineSet has.
func (p *plain) names(t *testing.T, count int) []string {
	t.Helper()
	var names []string
	for i := range count {
		name := fmt.Sprintf("plain-%03d", i)
		raw, err := json.Marshal(map[string]any{
			"machine": map[string]any{
				"name": name, "namespace": lab.Namespace, "uid": string(uuid.NewUUID()), "cluster_id": "bench", "labels": map[string]string{},
			},
			"provider_spec": map[string]any{
				"cpu": 4, "memory": "16Gi", "region": "region-a", "zone": "zone-a", "credentialsSecret": map[string]string{"name": "kubemark-credentials"},
			},
			"user_data": "",
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(p.dir, name+".tfvars.json"), raw, 0o600); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	return names
}
