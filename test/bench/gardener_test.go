//go:build bench

package bench

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/machine-iac/machine-iac-operator/hack/devcluster/cluster"
	"github.com/machine-iac/machine-iac-operator/hack/landscape"
	"github.com/machine-iac/machine-iac-operator/test/bench/page"
	"github.com/machine-iac/machine-iac-operator/test/process"
)

var poolMachines = flag.Int("pool-machines", 50, "Machines of a MachineDeployment of Gardener, and of a MachineSet beside it")

var gardenerText = template.Must(template.New("gardener").Parse(`
A Gardener MachineDeployment with kubemark Machines scales from 0 to {{.Machines}} and back,
{{.Parallel}} engine runs at a time ({{.Machine}}), with Nodes in a second cluster. Then a MachineSet
does the same in one cluster with the manager alone.

| way | by | wall seconds per Machine | CPU seconds per Machine |
|---|---|---|---|
{{range .Rows}}{{.}}
{{end}}`))

// TestGardener measures what Machines cost through Gardener's machine-controller-manager, beside the same through a MachineSet.
func TestGardener(t *testing.T) {
	var pool, set [2]cost // to all Machines, and back
	steps := []int{*poolMachines, 0}
	t.Run("a MachineDeployment", func(t *testing.T) {
		p := openPool(t)
		for i, replicas := range steps {
			pool[i] = p.resize(t, replicas)
		}
	})
	t.Run("a MachineSet", func(t *testing.T) {
		b := open(t, openLab(t))
		for i, replicas := range steps {
			set[i] = b.scale(t, replicas)
		}
	})
	if t.Failed() {
		return
	}
	var rows []string
	for i, way := range []string{fmt.Sprintf("0 to %d", *poolMachines), fmt.Sprintf("%d to 0", *poolMachines)} {
		row := func(by string, c cost) string {
			count := float64(*poolMachines)
			return fmt.Sprintf("| %s | %s | %.3f | %.3f |", way, by, c.wall.Seconds()/count, c.cpu.Seconds()/count)
		}
		rows = append(rows, row("MachineDeployment", pool[i]), row("MachineSet", set[i]),
			fmt.Sprintf("| %s | MachineDeployment / MachineSet | **%.2f** | **%.2f** |", way, ratio(pool[i].wall, set[i].wall), ratio(pool[i].cpu, set[i].cpu)))
	}
	writePage(t, page.Section{Title: "What a Machine of Gardener costs", Text: filled(t, gardenerText, map[string]any{
		"Machine": page.Machine(), "Machines": *poolMachines, "Parallel": *parallel, "Rows": rows,
	})})
}

// mcmPool is a MachineDeployment with all that makes its Machines.
type mcmPool struct {
	*bench
	mcm, driver *landscape.Process
}

// openPool starts two clusters and all programs, until the test ends, with a MachineDeployment that has no Machines.
func openPool(t *testing.T) *mcmPool {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() {
		// Also where they did not come up whole.
		for _, name := range []string{"control", "target"} {
			started, err := cluster.New(cluster.Options{Dir: filepath.Join(dir, name), Bin: "../../bin"})
			if err == nil {
				err = started.Down(context.WithoutCancel(t.Context()))
			}
			if err != nil {
				t.Error(err)
			}
		}
	})
	land, err := landscape.Open(contextOf(t), "../..", dir, os.Stdout)
	if err != nil {
		t.Fatal(err)
	}
	p := &mcmPool{bench: startManager(t, land.Lab, landscape.Controllers, fmt.Sprintf("--max-concurrent-runs=%d", *parallel))}
	p.mcm = startProgram(t, land, landscape.MCM)
	p.driver = startProgram(t, land, landscape.Driver)
	if err := p.Apply(contextOf(t), landscape.Class("small", 2)+"---"+landscape.Deployment(setName, "small", 0)); err != nil {
		t.Fatal(err)
	}
	p.resize(t, 1) // the module is initialised once, which is no cost of a Machine
	p.resize(t, 0)
	return p
}

func startProgram(t *testing.T, land *landscape.Landscape, name string) *landscape.Process {
	t.Helper()
	started, err := land.Start(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := started.Stop(time.Minute); err != nil {
			t.Error(err)
		}
	})
	return started
}

// resize brings the MachineDeployment to so many Machines that run, and returns what that cost.
func (p *mcmPool) resize(t *testing.T, replicas int) cost {
	t.Helper()
	before, began := p.spent(), time.Now()
	if _, err := p.Kubectl(contextOf(t), "scale", "machinedeployments.machine.sapcloud.io", setName, fmt.Sprintf("--replicas=%d", replicas)); err != nil {
		t.Fatal(err)
	}
	err := p.Until(contextOf(t), patience, fmt.Sprintf("%d Machines of Gardener run", replicas), func(ctx context.Context) (bool, error) {
		if !p.mcm.Running() || !p.driver.Running() {
			return false, errors.New("a program has ended: see its log in the folder of the clusters")
		}
		phases, err := p.Kubectl(ctx, "get", "machines.machine.sapcloud.io", "-o", `jsonpath={range .items[*]}{.status.currentStatus.phase}{"\n"}{end}`)
		return phases == strings.Repeat("Running\n", replicas), err
	})
	if err != nil {
		t.Fatal(err)
	}
	c := cost{wall: time.Since(began), cpu: p.spent() - before}
	t.Logf("%d Machines: %s of CPU in %s", replicas, c.cpu, c.wall)
	return c
}

// spent returns the CPU time of all programs so far.
func (p *mcmPool) spent() time.Duration {
	return process.CPU(p.manager.PID()) + process.CPU(p.mcm.PID()) + process.CPU(p.driver.PID())
}
