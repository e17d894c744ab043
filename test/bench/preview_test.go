//go:build bench

package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"text/template"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/machine-iac/machine-iac-operator/modules"
	"github.com/machine-iac/machine-iac-operator/test/bench/page"
)

// previewBound is what the preview of a MachineSet of 100 replicas may take once its module is initialised.
const previewBound = 3 * time.Second

// previewRounds are how often each is measured; the best counts, for what else the machine does only adds.
const previewRounds = 3

// TestPreview measures what `kubectl machine plan` takes offline, beside `tofu plan` of the same module, once for each Machine or
// MachineSet. It needs no cluster.
func TestPreview(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	p := &planning{root: root, dir: t.TempDir()}
	p.prepare(t)
	p.previewed(t, 1, 1) // initialises the module
	sizes := []struct{ replicas, sets int }{{1, 1}, {100, 1}, {10000, 1}, {1, 50}}
	var rows []string
	var took []time.Duration
	for _, size := range sizes {
		best := p.previewed(t, size.replicas, size.sets)
		for range previewRounds - 1 {
			if again := p.previewed(t, size.replicas, size.sets); again.wall < best.wall {
				best = again
			}
		}
		took = append(took, best.wall)
		row := fmt.Sprintf("| %d | %d | %.2f | %.2f |", size.sets, size.replicas, best.wall.Seconds(), best.cpu.Seconds())
		if machines := size.replicas * size.sets; machines <= 100 {
			loop := p.plain(t, machines)
			row += fmt.Sprintf(" %.2f | %.2f | **%.2f** | **%.2f** |", loop.wall.Seconds(), loop.cpu.Seconds(), ratio(best.wall, loop.wall), ratio(best.cpu, loop.cpu))
		} else {
			row += " | | | |"
		}
		rows = append(rows, row)
	}
	writePage(t, page.Section{Title: "What a preview costs", Text: filled(t, previewText, map[string]any{
		"Machine": page.Machine(), "Rows": rows, "Rounds": previewRounds,
		"Flat": fmt.Sprintf("%.2f", ratio(took[2], took[0])),
	})})
	if took[1] > previewBound {
		t.Errorf("the preview of 100 replicas takes %s, want less than %s", took[1], previewBound)
	}
	if flat := ratio(took[2], took[0]); flat > 1.5 {
		t.Errorf("the preview of 10000 replicas takes %.2f times that of one, want as long", flat)
	}
}

func ratio(a, b time.Duration) float64 { return a.Seconds() / b.Seconds() }

var previewText = template.Must(template.New("preview").Parse("`kubectl machine plan -f`" + ` of kubemark MachineSets with different cpu, offline, one new process
each, with an initialised module ({{.Machine}}; best of {{.Rounds}}, loop once). The plain loop is
` + "`tofu plan`" + ` in one initialised folder, per Machine of a MachineSet or per MachineSet, one
per core, without refresh.

| MachineSets | replicas of each | wall, s | CPU, s | plain loop: wall, s | CPU, s | wall / loop | CPU / loop |
|---|---|---|---|---|---|---|---|
{{range .Rows}}{{.}}
{{end}}
10000 replicas take {{.Flat}} times as long as one.
`))

// planning plans MachineSets in two ways.
type planning struct {
	root, dir   string
	environment []string
}

// prepare initialises the folder of the plain loop.
func (p *planning) prepare(t *testing.T) {
	t.Helper()
	source, err := fs.Sub(modules.FS, "kubemark")
	if err != nil {
		t.Fatal(err)
	}
	// Not the lock file: the mirror's provider is built from source.
	for _, name := range []string{"main.tf", "outputs.tf", "terraform.tf", "variables.tf"} {
		content, err := fs.ReadFile(source, name)
		if err != nil {
			t.Fatal(err)
		}
		p.write(t, name, string(content))
	}
	p.write(t, "cli.tfrc", fmt.Sprintf("provider_installation {\n  filesystem_mirror {\n    path = %q\n  }\n}\n", filepath.Join(p.root, "bin", "mirror")))
	p.environment = []string{
		"HOME=" + p.dir, "PATH=" + os.Getenv("PATH"), "TF_CLI_CONFIG_FILE=" + filepath.Join(p.dir, "cli.tfrc"), "TF_IN_AUTOMATION=1", "CHECKPOINT_DISABLE=1",
		"KUBE_LOAD_CONFIG_FILE=false", "KUBE_HOST=https://127.0.0.1:1", "KUBE_TOKEN=none",
	}
	p.run(contextOf(t), t, filepath.Join(p.root, "bin", "tofu"), "init", "-input=false")
}

func (p *planning) write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// run returns what a command takes.
func (p *planning) run(ctx context.Context, t *testing.T, program string, arguments ...string) cost {
	t.Helper()
	command := exec.CommandContext(ctx, program, arguments...)
	command.Dir, command.Env = p.dir, p.environment
	begun := time.Now()
	out, err := command.CombinedOutput()
	if err != nil {
		t.Errorf("%s %s: %v\n%s", program, strings.Join(arguments, " "), err, out)
		return cost{}
	}
	return cost{wall: time.Since(begun), cpu: command.ProcessState.UserTime() + command.ProcessState.SystemTime()}
}

// previewed returns what the plugin takes.
func (p *planning) previewed(t *testing.T, replicas, sets int) cost {
	t.Helper()
	example, err := os.ReadFile(filepath.Join(p.root, "modules", "kubemark", "examples", "machineset.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var manifests []string
	for n := range sets {
		manifests = append(manifests, strings.NewReplacer(
			"name: hollow", fmt.Sprintf("name: hollow-%d", n), "replicas: 3", fmt.Sprintf("replicas: %d", replicas), "cpu: 4", fmt.Sprintf("cpu: %d", n+1),
		).Replace(string(example)))
	}
	p.write(t, "manifests.yaml", strings.Join(manifests, "\n---\n"))
	return p.run(contextOf(t), t, filepath.Join(p.root, "bin", "kubectl-machine"), "plan", "-f", "manifests.yaml", "--cache-dir", filepath.Join(p.dir, "cache"))
}

// plain returns what the plain loop takes for so many Machines.
func (p *planning) plain(t *testing.T, count int) cost {
	t.Helper()
	costs := make(chan cost, count)
	begun := time.Now()
	group, ctx := errgroup.WithContext(contextOf(t))
	group.SetLimit(runtime.NumCPU())
	for n := range count {
		variables, err := json.Marshal(map[string]any{
			"machine":       map[string]any{"name": fmt.Sprintf("plain-%03d", n), "namespace": "ns", "uid": fmt.Sprintf("uid-%03d", n), "cluster_id": "c", "labels": map[string]string{}},
			"provider_spec": map[string]any{"instanceType": "hollow", "cpu": n + 1, "credentialsSecret": map[string]any{"name": "c"}}, "user_data": "",
		})
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("plain-%03d.tfvars.json", n)
		p.write(t, name, string(variables))
		group.Go(func() error {
			costs <- p.run(ctx, t, filepath.Join(p.root, "bin", "tofu"), "plan", "-input=false", "-no-color", "-refresh=false", "-lock=false", "-var-file="+name)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	all := cost{wall: time.Since(begun)}
	close(costs)
	for one := range costs {
		all.cpu += one.cpu
	}
	return all
}
