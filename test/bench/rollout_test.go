//go:build bench

package bench

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"text/template"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/test/bench/page"
	"github.com/machine-iac/machine-iac-operator/test/process"
)

var (
	deployed = flag.Int("deployed", 1000, "Machines of a MachineSet, and of a MachineDeployment beside it")
	rolled   = flag.Int("rolled", 200, "Machines that a rollout changes in place")
)

// What a MachineDeployment may cost beside what its Machines cost without one.
const (
	deploymentBound = 1.15
	memoryBound     = 20 // MiB
	inPlaceBound    = 2.0
)

var deploymentText = template.Must(template.New("deployment").Parse(`
A kubemark MachineSet scales up, {{.Parallel}} engine runs at a time, and its manager restarts. Then a
MachineDeployment that has adopted it does the same ({{.Machine}}).

| by | 0 to {{.Machines}}, s | CPU s a Machine | memory at rest, MiB |
|---|---|---|---|
{{range .Rows}}{{.}}
{{end}}`))

// deployment is what so many Machines of one object have cost on the way up, and the memory at rest.
type deployment struct {
	up    cost
	still float64
}

// TestDeployment measures what a MachineDeployment adds to the cost of new Machines, and of Machines at rest.
func TestDeployment(t *testing.T) {
	b := open(t, openLabWith(t, lab.Options{NodeLease: fleetLease}), "--sync-period="+never.String())
	set := b.deploy(t)
	b.scale(t, 0)
	b.kind = v1beta1.MachineDeploymentKind
	b.addSet(t, setName, "modules")
	pool := b.deploy(t)
	row := func(by string, d deployment) string {
		return fmt.Sprintf("| %s | %.0f | %.3f | %.0f |", by, d.up.wall.Seconds(), d.up.cpu.Seconds()/float64(*deployed), d.still)
	}
	wall, cpu, more := ratio(pool.up.wall, set.up.wall), ratio(pool.up.cpu, set.up.cpu), pool.still-set.still
	writePage(t, page.Section{Title: "What a MachineDeployment costs", Text: filled(t, deploymentText, map[string]any{
		"Machine": page.Machine(), "Machines": *deployed, "Parallel": *parallel, "Rows": []string{
			row("MachineSet", set), row("MachineDeployment", pool),
			fmt.Sprintf("| **MachineDeployment / MachineSet** | **%.2f** | **%.2f** | |", wall, cpu),
		},
	})})
	if wall > deploymentBound || cpu > deploymentBound || more > memoryBound {
		t.Errorf("%.2f times as long, %.2f times the CPU, %.0f MiB more, want at most %v, %[4]v, %d", wall, cpu, more, deploymentBound, memoryBound)
	}
}

// deploy scales up, and lets a new manager come to rest.
func (b *bench) deploy(t *testing.T) deployment {
	t.Helper()
	d := deployment{up: b.scale(t, *deployed)}
	b.restart(t)
	b.untilQuiet(t, *deployed)
	d.still = process.PeakMiB(b.manager.PID())
	t.Logf("%s: %s, at rest %.0f MiB", b.kind, per(d.up, *deployed), d.still)
	return d
}

var inPlaceText = template.Must(template.New("inPlace").Parse(`
A label of {{.Machines}} kubemark Nodes changes, {{.Parallel}} engine runs at a time: by a patch of every
Machine, then by rollouts ({{.Machine}}). With 0%, one Machine changes at a time.

| by | s | CPU s a Machine | s / patches | CPU / patches |
|---|---|---|---|---|
{{range .Rows}}{{.}}
{{end}}`))

// TestInPlace measures a rollout in place beside the same updates of Machines without one.
func TestInPlace(t *testing.T) {
	b := open(t, openLab(t))
	b.kind = v1beta1.MachineDeploymentKind
	b.addSet(t, setName, "modules")
	b.scale(t, *rolled)
	r := &race{bench: b, api: newAPIServer(t, b.Lab)}
	value := func(team string) string {
		return fmt.Sprintf(`{"spec":{"providerSpec":{"value":{"labels":{"example.com/team":%q}}}}}`, team)
	}
	updates := func(text string) float64 { return endedRuns(text, "terraform", updating) }
	plain := r.counted(t, *rolled, updates, func() {
		r.patch(t, contender{engine: setName}, func(string) string { return value("plain") })
	})
	row := func(change string, c cost) string {
		return fmt.Sprintf("| %s | %.0f | %.3f | **%.2f** | **%.2f** |", change, c.wall.Seconds(), c.cpu.Seconds(), ratio(c.wall, plain.wall), ratio(c.cpu, plain.cpu))
	}
	rows := []string{row("patches", plain)}
	for _, unavailable := range []int{100, 0} {
		spent := r.counted(t, *rolled, updates, func() {
			spec := fmt.Sprintf(`{"spec":{"strategy":{"rollingUpdate":{"maxUnavailable":"%d%%"}},"template":%s}}`, unavailable, value(fmt.Sprintf("rolled-%d", unavailable)))
			if err := r.api.patch(contextOf(t), b.path(), spec); err != nil {
				t.Fatal(err)
			}
		})
		b.untilRolledOut(t, r.api)
		rows = append(rows, row(fmt.Sprintf("rollout, `maxUnavailable: %d%%`", unavailable), spent))
		if unavailable == 100 && max(ratio(spent.wall, plain.wall), ratio(spent.cpu, plain.cpu)) > inPlaceBound {
			t.Errorf("a rollout costs %+v, Machines cost %+v, want at most %v times", spent, plain, inPlaceBound)
		}
	}
	writePage(t, page.Section{Title: "What a rollout in place costs", Text: filled(t, inPlaceText, map[string]any{
		"Machine": page.Machine(), "Machines": *rolled, "Parallel": *parallel, "Rows": rows,
	})})
}

// untilRolledOut waits until a rollout is complete.
func (b *bench) untilRolledOut(t *testing.T, api *apiServer) {
	t.Helper()
	until(t, scrapeEvery, "the rollout is complete", func(ctx context.Context) (bool, error) {
		var d v1beta1.MachineDeployment
		err := api.get(ctx, b.path(), &d)
		progressing := meta.FindStatusCondition(d.Status.Conditions, v1beta1.ConditionProgressing)
		return d.Status.ObservedGeneration == d.Generation && progressing != nil && progressing.Reason == v1beta1.ReasonNewMachineSetAvailable, err
	})
}
