//go:build bench

package bench

import (
	"context"
	"flag"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/test/bench/page"
	"github.com/machine-iac/machine-iac-operator/test/process"
)

var fleets = flag.String("fleets", "100,1000", "numbers of Machines that fleets have, separated by commas; 100,1000,5000 takes about an hour")

var fleetText = template.Must(template.New("fleet").Parse(`
A kubemark MachineSet scales up with OpenTofu, 4 runs at a time. Its manager restarts, idles, and the
MachineSet scales to 0 ({{.Machine}}). Simulated kubelets renew leases every {{.Renewal}} instead of
every 10 s. A restarted manager is quiet once it has reconciled every Machine. Idling lasts until all
states were read again. "idle: % of a core" adds a full reconcile every 10 minutes, the default of
` + "`--sync-period`" + `.

| Machines | up, s | down, s | CPU s a Machine, up | down | idle: CPU s a minute | idle: % of a core | restart: quiet after, s | CPU s | MiB by then | memory at the peak, MiB |
|---|---|---|---|---|---|---|---|---|---|---|
{{range .Fleets}}| {{.Machines}} | {{printf "%.0f" .Up.Wall.Seconds}} | {{printf "%.0f" .Down.Wall.Seconds}} | {{printf "%.3f" (.Each .Up)}} | {{printf "%.3f" (.Each .Down)}} | {{printf "%.2f" .IdleAMinute}} | {{printf "%.2f" .IdlePercent}} | {{printf "%.1f" .Quiet.Wall.Seconds}} | {{printf "%.1f" .Quiet.CPU.Seconds}} | {{printf "%.0f" .QuietMiB}} | {{printf "%.0f" .MiB}} |
{{end}}
CPU seconds from 0 up and back grow with the power **{{printf "%.2f" .Exponent}}** of the number of
Machines.
`))

const (
	// defaultResync is the default of --sync-period; often is how long that is where it is measured, and never where it should not matter.
	defaultResync = 10 * time.Minute
	often         = 30 * time.Second
	never         = 24 * time.Hour
)

// restful is how long nothing has happened to Nodes that are at rest.
const restful = 45 * time.Second

// fleetLease is how long the leases of Nodes last.
const fleetLease = 20 * time.Minute

// spending is a cost as the template reads it.
type spending struct {
	Wall, CPU time.Duration
	Starts    float64
}

// fleet is what so many Machines have cost.
type fleet struct {
	Machines              int
	Up, Down, Idle, Quiet spending
	// Resync is the CPU time of a regular reconcile of all.
	Resync time.Duration
	// MiB is the most that a manager has taken, QuietMiB that of the one that was restarted until it was quiet.
	MiB, QuietMiB float64
}

func (f fleet) Each(s spending) float64 { return s.CPU.Seconds() / float64(f.Machines) }

func (f fleet) IdleAMinute() float64 { return f.Idle.CPU.Seconds() / f.Idle.Wall.Minutes() }

// IdlePercent is what a fleet at rest takes of a core, with regular reconciles as they are by default.
func (f fleet) IdlePercent() float64 {
	return 100 * (f.Idle.CPU.Seconds()/f.Idle.Wall.Seconds() + f.Resync.Seconds()/defaultResync.Seconds())
}

func spendingOf(c cost) spending { return spending{Wall: c.wall, CPU: c.cpu, Starts: c.starts} }

// TestFleet measures fleets of several sizes one after another, each with a manager of its own.
func TestFleet(t *testing.T) {
	l := openLabWith(t, lab.Options{NodeLease: fleetLease})
	var all []fleet
	for text := range strings.SplitSeq(*fleets, ",") {
		number, err := strconv.Atoi(text)
		if err != nil || number < 1 {
			t.Fatalf("-fleets has %q, want numbers above zero", text)
		}
		t.Run(text, func(t *testing.T) { all = append(all, measureFleet(t, l, number)) })
	}
	if t.Failed() {
		return
	}
	writePage(t, page.Section{Title: "What fleets cost", Text: filled(t, fleetText, map[string]any{
		"Machine": page.Machine(), "Renewal": fleetLease / 4, "Fleets": all, "Exponent": exponent(all),
	})})
}

func measureFleet(t *testing.T, l *lab.Lab, number int) fleet {
	t.Helper()
	b := open(t, l, "--inventory-interval=0", "--sync-period="+never.String())
	f := fleet{Machines: number, Up: spendingOf(b.scale(t, number))}
	f.MiB = process.PeakMiB(b.manager.PID())
	b.restart(t, "--sync-period="+often.String())
	b.untilQuiet(t, number)
	b.untilNodesRest(t)
	again := b.watchResync(t, number)
	began := b.restart(t, "--sync-period="+never.String())
	b.untilQuiet(t, number)
	f.Quiet = spending{Wall: time.Since(began), CPU: process.CPU(b.manager.PID()), Starts: b.starts(t)}
	f.QuietMiB = process.PeakMiB(b.manager.PID())
	f.Idle = spendingOf(b.watchIdle(t, time.Minute, betweenLooks(number)))
	f.Resync = again.each(f.Idle, number)
	t.Logf("until all are deleted: %+v", f)
	f.Down = spendingOf(b.scale(t, 0))
	f.MiB = max(f.MiB, process.PeakMiB(b.manager.PID()))
	t.Logf("%+v", f)
	return f
}

// betweenLooks is how long a manager with so many Machines does not look at their states (intervalFor in actuators/orphans). It does once in that time.
func betweenLooks(number int) time.Duration {
	return max(2*time.Minute, time.Duration(number)*60*time.Millisecond)
}

// restart ends the manager and starts it again, with flags that come after those it had. It returns when that began.
func (b *bench) restart(t *testing.T, flags ...string) time.Time {
	t.Helper()
	if err := b.manager.Stop(patience); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	next, err := b.manager.Restart(contextOf(t), flags...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !next.Running() {
			return
		}
		if err := next.Stop(patience); err != nil {
			t.Error(err)
		}
	})
	b.manager = next
	return began
}

// repeated is what reconciles have taken in some time, with what a manager at rest takes.
type repeated struct {
	wall, cpu  time.Duration
	reconciled float64
}

// each returns the CPU time of one reconcile of all, beyond what the manager takes at rest anyway.
func (r repeated) each(idle spending, number int) time.Duration {
	taken := r.cpu - time.Duration(float64(idle.CPU)*r.wall.Seconds()/idle.Wall.Seconds())
	return max(0, time.Duration(float64(taken)*float64(number)/r.reconciled))
}

// watchResync measures while all are reconciled again. It counts reconciles, since a resync is not punctual.
func (b *bench) watchResync(t *testing.T, number int) repeated {
	t.Helper()
	watched := 5 * often / 2
	before, cpu := b.reconciled(t, "machine"), process.CPU(b.manager.PID())
	pause(t, watched)
	r := repeated{wall: watched, cpu: process.CPU(b.manager.PID()) - cpu, reconciled: b.reconciled(t, "machine") - before}
	if r.reconciled < float64(number) {
		t.Fatalf("%v reconciles of %d Machines in %s with --sync-period=%s", r.reconciled, number, watched, often)
	}
	return r
}

// reconciled returns how often a controller has reconciled.
func (b *bench) reconciled(t *testing.T, controller string) float64 {
	t.Helper()
	return series(b.metrics(t), "controller_runtime_reconcile_total", map[string]string{"controller": controller})
}

// untilNodesRest waits until no Node has changed for a while in what nodelink is concerned with: kube-controller-manager labels and
// annotates each new Node, as fast as the limit of its client allows, which is slower than Machines come.
func (b *bench) untilNodesRest(t *testing.T) {
	t.Helper()
	linked, since := b.reconciled(t, "nodelink"), time.Now()
	err := b.Until(contextOf(t), patience, "no Node changes", func(context.Context) (bool, error) {
		time.Sleep(5 * time.Second)
		if now := b.reconciled(t, "nodelink"); now != linked {
			linked, since = now, time.Now()
		}
		return time.Since(since) > restful, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// untilQuiet waits until the manager has reconciled so many Machines, and nothing is left to do.
func (b *bench) untilQuiet(t *testing.T, number int) {
	t.Helper()
	err := b.Until(contextOf(t), patience, "the manager is quiet", func(ctx context.Context) (bool, error) {
		time.Sleep(time.Duration(number) * 100 * time.Microsecond) // its metrics have a series for each Machine
		_, text, err := b.manager.Scrape(ctx, b.token)
		if err != nil {
			return false, nil //nolint:nilerr // it is not up yet
		}
		done := series(text, "controller_runtime_reconcile_total", map[string]string{"controller": "machine"})
		return done >= float64(number) && lab.Sum(text, "workqueue_depth") == 0 && lab.Sum(text, "controller_runtime_active_workers") == 0, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// exponent fits CPU = a * Machines^exponent by the least squares of logarithms; 0 for a single fleet.
func exponent(all []fleet) float64 {
	if len(all) < 2 {
		return 0
	}
	var x, y, xx, xy float64
	for _, f := range all {
		lx, ly := math.Log(float64(f.Machines)), math.Log((f.Up.CPU + f.Down.CPU).Seconds())
		x, y, xx, xy = x+lx, y+ly, xx+lx*lx, xy+lx*ly
	}
	n := float64(len(all))
	return (n*xy - x*y) / (n*xx - x*x)
}

func TestExponent(t *testing.T) {
	var all []fleet
	for _, number := range []int{100, 1000, 5000} {
		all = append(all, fleet{Machines: number, Up: spending{CPU: time.Duration(number*number) * time.Second}})
	}
	if got := fmt.Sprintf("%.3f", exponent(all)); got != "2.000" {
		t.Errorf("what grows with the square has the exponent %s", got)
	}
}
