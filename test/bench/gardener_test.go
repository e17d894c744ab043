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
{{.Parallel}} engine runs at a time ({{.Machine}}), with machine-controller-manager, its machine
controller with the driver, our manager, and Nodes in a second cluster. Then a MachineSet does the
same in one cluster with the manager alone.

| way | by | wall seconds per Machine | CPU seconds per Machine | the manager and its engines | machine-controller-manager | its machine controller |
|---|---|---|---|---|---|---|
{{range .Rows}}{{.}}
{{end}}`))

// poolCost is what a way has cost, by program: the manager, MCM, and its machine controller with the driver.
type poolCost struct {
	wall time.Duration
	cpu  [3]time.Duration
}

func (c poolCost) all() time.Duration { return c.cpu[0] + c.cpu[1] + c.cpu[2] }

func (c poolCost) row(way, by string) string {
	count := float64(*poolMachines)
	cells := []string{way, by}
	for _, spent := range []time.Duration{c.wall, c.all(), c.cpu[0], c.cpu[1], c.cpu[2]} {
		cells = append(cells, fmt.Sprintf("%.3f", spent.Seconds()/count))
	}
	return "| " + strings.Join(cells, " | ") + " |"
}

// TestGardener measures what Machines cost through Gardener's machine-controller-manager, beside the same through a MachineSet.
func TestGardener(t *testing.T) {
	var pool, set [2]poolCost // to all Machines, and back
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
			spent := b.scale(t, replicas)
			set[i] = poolCost{wall: spent.wall, cpu: [3]time.Duration{spent.cpu}}
		}
	})
	if t.Failed() {
		return
	}
	var rows []string
	for i, way := range []string{fmt.Sprintf("0 to %d", *poolMachines), fmt.Sprintf("%d to 0", *poolMachines)} {
		rows = append(rows, pool[i].row(way, "MachineDeployment"), set[i].row(way, "MachineSet"),
			fmt.Sprintf("| %s | MachineDeployment / MachineSet | **%.2f** | **%.2f** | | | |", way, ratio(pool[i].wall, set[i].wall), ratio(pool[i].all(), set[i].all())))
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
func (p *mcmPool) resize(t *testing.T, replicas int) poolCost {
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
	cost, after := poolCost{wall: time.Since(began)}, p.spent()
	for i := range after {
		cost.cpu[i] = after[i] - before[i]
	}
	t.Logf("%d Machines: %s of CPU in %s", replicas, cost.all(), cost.wall)
	return cost
}

// spent returns the CPU time of each program so far.
func (p *mcmPool) spent() [3]time.Duration {
	return [3]time.Duration{process.CPU(p.manager.PID()), process.CPU(p.mcm.PID()), process.CPU(p.driver.PID())}
}
