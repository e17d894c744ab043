//go:build bench

// Package bench measures, and writes the figures into docs/benchmarks.md: the operator beside a plain loop of the engine (TestBench),
// the engines beside each other (TestEngines), looks beside drift checks (TestLooks), the native controllers beside an API server (TestControllers),
// what the webhooks add to a request (TestAdmission), whether engines are killed for want of memory (TestMemory), what Machines of
// Gardener cost (TestGardener), and what a MachineDeployment adds to its Machines (TestDeployment, TestInPlace).
package bench

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/hack/devcluster/cluster"
	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/test/bench/page"
	"github.com/machine-iac/machine-iac-operator/test/process"
)

var (
	machines = flag.Int("machines", 100, "Machines made and destroyed in each round")
	rounds   = flag.Int("rounds", 1, "rounds; each runs the plain loop and the operator")
	parallel = flag.Int("parallel", 4, "engine runs at a time, for both")
	idle     = flag.Int("idle", 500, "Machines that exist while the manager is idle")
	idleFor  = flag.Duration("idle-for", time.Minute, "how long the idle manager is watched")
	pageFile = flag.String("page", "../../docs/benchmarks.md", "file to write; empty for none")
	against  = flag.String("against", "", "file with a page whose ratios are not to grow by more than a fifth; empty for none")
)

const (
	setName  = "bench"
	patience = 20 * time.Minute
	// tolerance is how much a ratio may grow, where it is compared.
	tolerance = 0.2
)

// cost is what a number of Machines has cost.
type cost struct {
	wall, cpu time.Duration
	starts    float64
}

func (c cost) add(other cost) cost {
	return cost{wall: c.wall + other.wall, cpu: c.cpu + other.cpu, starts: c.starts + other.starts}
}

// bench is the operator under measurement.
type bench struct {
	*lab.Lab
	manager *lab.Manager
	token   string
	// kind is that of the object that scales.
	kind string
}

// way is how the operator is run.
type way struct {
	title string
	flags []string
}

// ways are what is compared with the plain loop; the last is the default.
var ways = []way{
	{title: "operator, `--warm-providers=0`", flags: []string{"--warm-providers=0"}},
	{title: "operator"},
}

func TestBench(t *testing.T) {
	l := openLab(t)
	loop := newPlain(t, l)
	names := loop.names(t, *machines)
	var result figures
	for round := range *rounds {
		made := loop.all(t, "apply", names, *parallel)
		checked := loop.all(t, "plan", names, *parallel)
		gone := loop.all(t, "destroy", names, *parallel)
		result.plain = result.plain.add(measured{life: made.add(gone), check: checked})
		t.Logf("round %d, plain loop: create %s, plan %s, destroy %s", round+1, per(made, *machines), per(checked, *machines), per(gone, *machines))
	}
	for i, w := range ways {
		t.Run(w.title, func(t *testing.T) {
			b := open(t, l, w.flags...)
			m := measured{title: w.title}
			for round := range *rounds {
				m = m.add(b.round(t, round))
			}
			m.managerMiB = process.PeakMiB(b.manager.PID())
			result.operator = append(result.operator, m)
			if i < len(ways)-1 || *idle == 0 {
				return
			}
			b.scale(t, *idle)
			result.idle = b.watchIdle(t, 10*time.Second, *idleFor)
			result.idleMiB = process.PeakMiB(b.manager.PID())
		})
	}
	if !t.Failed() {
		result.print(t) // the Machines go with the cluster
	}
}

// measured is what the lives of Machines have cost in one way, and what checks of them have.
type measured struct {
	title       string
	life, check cost
	managerMiB  float64
	// largest is the child that took the most memory, by its program.
	largest peak
}

func (m measured) add(other measured) measured {
	m.life, m.check = m.life.add(other.life), m.check.add(other.check)
	if other.largest.mib > m.largest.mib {
		m.largest = other.largest
	}
	return m
}

// round makes the Machines, checks them for drift and destroys them.
func (b *bench) round(t *testing.T, number int) measured {
	t.Helper()
	children := watch(b.manager.PID())
	made := b.scale(t, *machines)
	r := &race{bench: b, api: newAPIServer(t, b.Lab)}
	each := r.counted(t, *machines, func(text string) float64 { return endedRuns(text, "terraform", checking) }, func() {
		r.begin(t, contender{engine: setName}, checking, *machines)
	})
	gone := b.scale(t, 0)
	count := float64(*machines)
	checked := cost{wall: each.wall, cpu: time.Duration(float64(each.cpu) * count), starts: each.starts * count}
	t.Logf("round %d, operator: create %s, check %s, destroy %s", number+1, per(made, *machines), per(checked, *machines), per(gone, *machines))
	return measured{life: made.add(gone), check: checked, largest: children.end()}
}

// openLab brings a cluster up until the test ends, even one that did not come up whole.
func openLab(t *testing.T) *lab.Lab { return openLabWith(t, lab.Options{}) }

func openLabWith(t *testing.T, options lab.Options) *lab.Lab {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() {
		started, err := cluster.New(cluster.Options{Dir: dir, Bin: "../../bin"})
		if err == nil {
			err = started.Down(context.WithoutCancel(t.Context()))
		}
		if err != nil {
			t.Error(err)
		}
	})
	options.Root, options.Dir, options.Progress = "../..", dir, os.Stdout
	l, err := lab.Open(contextOf(t), options)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// open starts the manager, with a MachineSet that has no Machines yet.
func open(t *testing.T, l *lab.Lab, flags ...string) *bench {
	t.Helper()
	b := startManager(t, l, slices.Concat([]string{
		fmt.Sprintf("--max-concurrent-runs=%d", *parallel), fmt.Sprintf("--max-concurrent-drift-checks=%d", *parallel), "--drift-interval=24h",
	}, flags)...)
	b.addSet(t, setName, "modules")
	b.scale(t, 1) // the module is initialised once, which is no cost of a Machine
	b.scale(t, 0)
	return b
}

// startManager starts the manager until the test ends, and waits for its metrics.
func startManager(t *testing.T, l *lab.Lab, flags ...string) *bench {
	t.Helper()
	manager, err := l.StartManager(contextOf(t), flags...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := manager.Stop(patience); err != nil {
			t.Error(err)
		}
	})
	b := &bench{Lab: l, manager: manager, kind: "MachineSet"}
	if b.token, err = l.MetricsToken(contextOf(t)); err != nil {
		t.Fatal(err)
	}
	err = l.Until(contextOf(t), time.Minute, "the metrics are served", func(ctx context.Context) (bool, error) {
		code, _, err := manager.Scrape(ctx, b.token)
		return code == http.StatusOK, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// addSet makes a MachineSet of the example of kubemark in a folder of the repository, without Machines, or another kind with the same fields.
func (b *bench) addSet(t *testing.T, name, folder string) {
	t.Helper()
	manifest, err := os.ReadFile(b.Path(folder, "kubemark", "examples", "machineset.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	replaced := strings.NewReplacer("kind: MachineSet", "kind: "+b.kind, "name: hollow", "name: "+name, "machineset: hollow", "machineset: "+name, "replicas: 3", "replicas: 0")
	if err := b.Apply(contextOf(t), replaced.Replace(string(manifest))); err != nil {
		t.Fatal(err)
	}
}

// path is where the API server has the object that scales.
func (b *bench) path() string { return apiPath + "/" + strings.ToLower(b.kind) + "s/" + setName }

// scale brings the MachineSet to so many Machines that run, and returns what that cost.
func (b *bench) scale(t *testing.T, replicas int) cost {
	t.Helper()
	before := cost{cpu: process.CPU(b.manager.PID()), starts: b.starts(t)}
	started := time.Now()
	if _, err := b.Kubectl(contextOf(t), "scale", b.kind, setName, fmt.Sprintf("--replicas=%d", replicas)); err != nil {
		t.Fatal(err)
	}
	b.untilScaled(t, replicas)
	wall := time.Since(started)
	return cost{wall: wall, cpu: process.CPU(b.manager.PID()) - before.cpu, starts: b.starts(t) - before.starts}
}

// untilScaled waits until so many Machines run and there are no others. They are listed once the MachineSet says so: a list of thousands takes the API
// server as long as the work of many, and starting kubectl more than what is measured.
func (b *bench) untilScaled(t *testing.T, replicas int) {
	t.Helper()
	api, logged := newAPIServer(t, b.Lab), time.Now()
	err := b.Until(contextOf(t), 3*patience, fmt.Sprintf("%d Machines run", replicas), func(ctx context.Context) (bool, error) {
		var set machinev1beta1.MachineSet
		if err := api.get(ctx, b.path(), &set); err != nil {
			return false, err
		}
		if time.Since(logged) > 10*time.Second {
			logged = time.Now()
			t.Logf("%d of %d are ready, %d in all", set.Status.ReadyReplicas, replicas, set.Status.Replicas)
		}
		if int(set.Status.ReadyReplicas) != replicas || int(set.Status.Replicas) != replicas {
			return false, nil
		}
		var all machinev1beta1.MachineList
		if replicas == 0 { // those that are being deleted are not in its status
			err := api.get(ctx, machinesPath+"?limit=1", &all)
			return len(all.Items) == 0, err
		}
		if err := api.get(ctx, machinesPath, &all); err != nil {
			return false, err
		}
		running := slices.DeleteFunc(slices.Clone(all.Items), func(m machinev1beta1.Machine) bool {
			return m.Status.Phase == nil || *m.Status.Phase != machinev1beta1.PhaseRunning
		})
		if len(running) == replicas && len(all.Items) == replicas {
			return true, nil
		}
		time.Sleep(time.Duration(len(all.Items)) * time.Millisecond) // see above
		return false, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (b *bench) starts(t *testing.T) float64 {
	t.Helper()
	return lab.Sum(b.metrics(t), "machine_iac_engine_starts_total")
}

func (b *bench) metrics(t *testing.T) string {
	t.Helper()
	code, text, err := b.manager.Scrape(contextOf(t), b.token)
	if err != nil || code != http.StatusOK {
		t.Fatalf("reading metrics: status %d, %v", code, err)
	}
	return text
}

// watchIdle lets the manager settle, and measures while nothing happens.
func (b *bench) watchIdle(t *testing.T, settling, watched time.Duration) cost {
	t.Helper()
	pause(t, settling)
	before := cost{cpu: process.CPU(b.manager.PID()), starts: b.starts(t)}
	pause(t, watched)
	c := cost{wall: watched, cpu: process.CPU(b.manager.PID()) - before.cpu, starts: b.starts(t) - before.starts}
	if c.starts > 0 {
		t.Errorf("an idle manager started %v processes", c.starts)
	}
	return c
}

func per(c cost, count int) string {
	return fmt.Sprintf("%.3f s wall, %.3f s CPU, %.2f starts each", c.wall.Seconds()/float64(count), c.cpu.Seconds()/float64(count), c.starts/float64(count))
}

// writePage shows sections, and puts them into the page.
func writePage(t *testing.T, sections ...page.Section) {
	t.Helper()
	for _, section := range sections {
		fmt.Printf("\n## %s\n\n%s\n", section.Title, section.Text)
	}
	if *against != "" {
		worse, err := page.Check(filepath.FromSlash(*against), tolerance, sections...)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range worse {
			t.Error(line)
		}
	}
	if *pageFile == "" {
		return
	}
	if err := page.Write(filepath.FromSlash(*pageFile), sections...); err != nil {
		t.Fatal(err)
	}
}
