//go:build bench

package bench

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/test/process"
)

var each = flag.Int("each", 20, "Machines of each engine, where engines are measured beside each other")

// raceRounds is how often engines go through all operations. A few seconds of one are a fifth more or less by chance.
const raceRounds = 3

// contender is an engine with a MachineSet of its own.
type contender struct {
	// engine is its label in series, and its MachineSet's name. title is for people, cli the program.
	engine, title, cli string
	// examples is the folder that has kubemark for it.
	examples string
	// change is what a Machine's providerSpec is merged with, for an update in place.
	change string
	// calls are the commands that the CLI is to be started with, per Machine, by operation.
	calls map[operation]map[string]int
}

// contenders are the engines; the first is what the others are measured by.
var contenders = []contender{
	{
		engine: "terraform", title: "OpenTofu", cli: "tofu", examples: "modules", change: `{"instanceType":"changed"}`,
		calls: map[operation]map[string]int{
			creating: {"apply": 1}, updating: {"plan": 1, "apply": 1}, checking: {"plan": 1}, destroying: {"destroy": 1},
		},
	},
	{
		engine: "pulumi", title: "Pulumi", cli: "pulumi", examples: "stacks", change: `{"values":{"instanceType":"changed"}}`,
		calls: map[operation]map[string]int{
			creating: {"up": 1}, updating: {"preview": 1, "up": 1}, checking: {"preview": 1}, destroying: {"destroy": 1},
		},
	},
}

// operation is what a run does, as series name it.
type operation string

const (
	creating   operation = "create"
	updating   operation = "update"
	checking   operation = "drift"
	destroying operation = "destroy"
)

var operations = []operation{creating, updating, checking, destroying}

// race is the engines under measurement, side by side under one manager.
type race struct {
	*bench
	api  *apiServer
	logs *callLogs
}

// TestEngines measures what the same Machines cost with each engine.
func TestEngines(t *testing.T) {
	l := openLab(t)
	logs := newCallLogs(t, l)
	r := &race{logs: logs, api: newAPIServer(t, l), bench: startManager(t, l,
		fmt.Sprintf("--max-concurrent-runs=%d", *parallel), fmt.Sprintf("--max-concurrent-drift-checks=%d", *parallel), "--drift-interval=24h", "--apply-batch=1", "--drift-batch=1",
		"--engine-path="+logs.program("tofu"), "--pulumi="+logs.program("pulumi"), "--sandbox-read="+l.Path("bin"))}
	for _, c := range contenders {
		r.addSet(t, c.engine, c.examples)
		// Modules are initialised once, keys are made once, and each slot asks OpenTofu for its version once: no costs of a Machine.
		r.operate(t, c, creating, *parallel)
		r.operate(t, c, destroying, *parallel)
	}
	found := raceFigures{costs: map[string]map[operation]cost{}, peaks: map[string]peak{}}
	for round := range raceRounds {
		for _, o := range operations {
			for _, c := range contenders {
				spent, most := r.operate(t, c, o, *each)
				r.check(t, c, o, *each, spent.starts)
				found.add(c.engine, o, spent, most)
				t.Logf("round %d, %s, %s: %s", round+1, c.title, o, per(spent, *each))
			}
		}
	}
	found.write(t)
}

// operate has every Machine of an engine go through an operation, and returns what that cost.
func (r *race) operate(t *testing.T, c contender, o operation, count int) (cost, peak) {
	t.Helper()
	r.api.settled(t)
	r.logs.clear()
	text := r.metrics(t)
	before := cost{cpu: process.CPU(r.manager.PID()), starts: starts(text, c.engine)}
	ended := endedRuns(text, c.engine, o)
	children := watch(r.manager.PID())
	began := time.Now()
	r.begin(t, c, o, count)
	until(t, scrapeEvery, fmt.Sprintf("%d runs of %s have ended that %s", count, c.title, o), func(ctx context.Context) (bool, error) {
		_, text, err := r.manager.Scrape(ctx, r.token)
		return endedRuns(text, c.engine, o)-ended >= float64(count), err
	})
	spent := cost{wall: time.Since(began)}
	r.finish(t, c, o, count)
	r.api.settled(t)
	most := children.end()
	spent.cpu = process.CPU(r.manager.PID()) - before.cpu
	spent.starts = starts(r.metrics(t), c.engine) - before.starts
	return spent, most
}

// begin makes every Machine of an engine need an operation.
func (r *race) begin(t *testing.T, c contender, o operation, count int) {
	t.Helper()
	switch o {
	case creating:
		r.replicas(t, c, count)
	case destroying:
		r.replicas(t, c, 0)
	case updating:
		r.patch(t, c, func(string) string { return `{"spec":{"providerSpec":{"value":` + c.change + `}}}` })
	case checking:
		// A Machine that was never checked is due for it, at its next reconcile.
		states := fmt.Sprintf("%s=%s,%s in (%s)", state.LabelRole, state.RoleHead, state.LabelMachineUID, strings.Join(r.machines(t, c, "uid"), ","))
		if _, err := r.Kubectl(contextOf(t), "annotate", "secrets", "--selector", states, state.Prefix+"drift-check-"); err != nil {
			t.Fatal(err)
		}
		r.patch(t, c, func(name string) string { return `{"metadata":{"annotations":{"` + touched + `":"` + name + `"}}}` })
	}
}

// scrapeEvery is how often the metrics of a manager are read that is measured: it costs the manager some milliseconds each time.
const scrapeEvery = 2 * time.Second

const touched = "bench.machine-iac.io/touched"

func (r *race) replicas(t *testing.T, c contender, count int) {
	t.Helper()
	if _, err := r.Kubectl(contextOf(t), "scale", "machineset", c.engine, fmt.Sprintf("--replicas=%d", count)); err != nil {
		t.Fatal(err)
	}
}

// patch merges each Machine of an engine with a patch for its name.
func (r *race) patch(t *testing.T, c contender, with func(name string) string) {
	t.Helper()
	group, ctx := errgroup.WithContext(contextOf(t))
	for _, name := range r.machines(t, c, "name") {
		group.Go(func() error { return r.api.patch(ctx, machinesPath+"/"+name, with(name)) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

// machines returns a field of the metadata of each Machine of an engine.
func (r *race) machines(t *testing.T, c contender, field string) []string {
	t.Helper()
	all, err := r.Kubectl(contextOf(t), "get", "machines", "--selector", setLabel+"="+c.engine, "-o", "jsonpath={.items[*].metadata."+field+"}")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(all)
}

const setLabel = "machine.openshift.io/cluster-api-machineset"

// finish waits until the Machines of an engine are as an operation leaves them.
func (r *race) finish(t *testing.T, c contender, o operation, count int) {
	t.Helper()
	if o == destroying {
		count = 0
	}
	until(t, 500*time.Millisecond, fmt.Sprintf("%d Machines of %s run", count, c.title), func(ctx context.Context) (bool, error) {
		phases, err := r.Kubectl(ctx, "get", "machines", "--selector", setLabel+"="+c.engine, "-o", `jsonpath={range .items[*]}{.status.phase}{"\n"}{end}`)
		return phases == strings.Repeat("Running\n", count), err
	})
}

// check holds an operation to the processes that it is allowed.
func (r *race) check(t *testing.T, c contender, o operation, count int, started float64) {
	t.Helper()
	wanted := map[string]map[string]int{c.cli: {}}
	for call, times := range c.calls[o] {
		wanted[c.cli][call] = times * count
	}
	got := r.logs.calls()
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Errorf("%s, %s: the CLIs that %d Machines needed (-want +got):\n%s", c.title, o, count, diff)
	}
	if sum := sumOf(got[c.cli]); started != float64(sum) {
		t.Errorf("%s, %s: machine_iac_engine_starts_total grew by %v, and %d CLIs were started", c.title, o, started, sum)
	}
}

func sumOf(calls map[string]int) int {
	var sum int
	for count := range maps.Values(calls) {
		sum += count
	}
	return sum
}

func starts(metrics, engine string) float64 {
	return series(metrics, "machine_iac_engine_starts_total", map[string]string{"engine": engine})
}

func endedRuns(metrics, engine string, o operation) float64 {
	return series(metrics, "machine_iac_run_duration_seconds_count", map[string]string{"engine": engine, "operation": string(o), "result": "success"})
}
