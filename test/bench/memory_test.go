//go:build bench

package bench

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/test/bench/page"
)

var (
	memoryMachines = flag.Int("memory-machines", 1000, "Machines made at once with little memory")
	memoryMiB      = flag.Int("memory-mib", 512, "that memory")
	memoryRuns     = flag.Int("memory-runs", 32, "engine runs at a time that the manager may execute meanwhile")
)

// unboundedFor is how long is waited for the kernel to kill where runs are not admitted by their memory.
const unboundedFor = 2 * time.Minute

var memoryText = template.Must(template.New("memory").Parse(`
A kubemark MachineSet scales from 0 to {{.Machines}} and back, in a control group of {{.Limit}} MiB,
with up to {{.Runs}} concurrent runs ({{.Machine}}). The manager detects the limit and lets runs
wait. The last column counts each run of a batch. The second row has ` + "`--memory-limit=0`" + `.

| runs | killed for want of memory | wall, s | most runs at a time |
|---|---|---|---|
| wait for memory | **{{.Bounded.Kills}}** | {{printf "%.0f" .Bounded.Wall.Seconds}} | {{.Bounded.Most}} |
| do not wait | {{.Unbounded.Kills}} within {{printf "%.0f" .Unbounded.Wall.Seconds}} s | | {{.Unbounded.Most}} |
`))

// pressed is how it went with little memory.
type pressed struct {
	Kills, Most int
	Wall        time.Duration
}

// TestMemory shows that no run is killed for want of memory, whatever the number of runs that may execute. It needs root, and control groups.
func TestMemory(t *testing.T) {
	l := openLab(t)
	values := map[string]any{"Machine": page.Machine(), "Machines": *memoryMachines, "Limit": *memoryMiB, "Runs": *memoryRuns}

	group := newControlGroup(t, *memoryMiB)
	b := group.start(t, l)
	b.addSet(t, setName, "modules")
	watched := b.watchRuns(t)
	began := time.Now()
	b.scale(t, *memoryMachines)
	b.scale(t, 0)
	bounded := pressed{Kills: group.kills(t), Wall: time.Since(began), Most: watched()}
	if err := b.manager.Stop(patience); err != nil {
		t.Error(err)
	}
	t.Logf("with a bound: %+v", bounded)

	other := newControlGroup(t, *memoryMiB)
	unbounded := other.overwhelmed(t, l)
	t.Logf("without one: %+v", unbounded)
	values["Bounded"], values["Unbounded"] = bounded, unbounded
	writePage(t, page.Section{Title: "What little memory does", Text: filled(t, memoryText, values)})
	if bounded.Kills > 0 {
		t.Errorf("the kernel has killed %d processes for want of memory", bounded.Kills)
	}
	if unbounded.Kills == 0 {
		t.Error("the kernel kills nothing without a bound either: this shows nothing; raise -memory-runs")
	}
}

// overwhelmed has a manager execute as many runs as its flag allows, until the kernel kills one.
func (g controlGroup) overwhelmed(t *testing.T, l *lab.Lab) pressed {
	t.Helper()
	b := g.start(t, l, "--memory-limit=0")
	watched, began := b.watchRuns(t), time.Now()
	if _, err := b.Kubectl(contextOf(t), "scale", "machineset", setName, fmt.Sprintf("--replicas=%d", 4**memoryRuns)); err != nil {
		t.Fatal(err)
	}
	for time.Since(began) < unboundedFor && g.kills(t) == 0 {
		pause(t, time.Second)
	}
	result := pressed{Kills: g.kills(t), Wall: time.Since(began), Most: watched()}
	if b.manager.Running() {
		if err := b.manager.Kill(); err != nil {
			t.Error(err)
		}
	}
	return result
}

// watchRuns returns what returns how many runs have executed at a time so far at most.
func (b *bench) watchRuns(t *testing.T) func() int {
	t.Helper()
	ctx, stop := context.WithCancel(contextOf(t))
	most, ended := 0, make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			if _, text, err := b.manager.Scrape(ctx, b.token); err == nil {
				most = max(most, int(lab.Sum(text, "machine_iac_runs_running")))
			}
			select {
			case <-ctx.Done():
			case <-time.After(300 * time.Millisecond):
			}
		}
	}()
	return func() int {
		stop()
		<-ended
		return most
	}
}

// controlGroup is a folder of the kernel's interface, of version 1 or 2.
type controlGroup struct {
	dir string
	// events is the file in it that counts kills.
	events string
}

// newControlGroup makes a control group with so much memory below that of this process; the test is skipped where none can be made.
func newControlGroup(t *testing.T, mib int) controlGroup {
	t.Helper()
	parent, second := ownControlGroup(t)
	g := controlGroup{dir: filepath.Join(parent, fmt.Sprintf("machine-iac-bench-%d-%d", os.Getpid(), time.Now().UnixNano())), events: "memory.oom_control"}
	limit := "memory.limit_in_bytes"
	if second {
		g.events, limit = "memory.events", "memory.max"
	}
	if err := os.Mkdir(g.dir, 0o755); err != nil { //nolint:gosec // it is not in a file system
		t.Skipf("no control group can be made: %v", err)
	}
	t.Cleanup(func() {
		for range 50 { // until the processes in it are gone
			if os.Remove(g.dir) == nil {
				return
			}
			time.Sleep(200 * time.Millisecond)
		}
		t.Errorf("%s cannot be removed", g.dir)
	})
	if err := os.WriteFile(filepath.Join(g.dir, limit), []byte(strconv.Itoa(mib<<20)), 0o600); err != nil {
		t.Skipf("the memory of a control group cannot be limited: %v", err)
	}
	return g
}

// ownControlGroup returns the folder of the control group of this process that limits memory, and whether it is of version 2.
func ownControlGroup(t *testing.T) (dir string, second bool) {
	t.Helper()
	content, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Skipf("there are no control groups: %v", err)
	}
	const root = "/sys/fs/cgroup"
	for line := range strings.Lines(string(content)) {
		if _, own, found := strings.Cut(strings.TrimSpace(line), ":memory:"); found {
			return filepath.Join(root, "memory", own), false
		}
	}
	_, own, _ := strings.Cut(strings.TrimSpace(string(content)), "::")
	return filepath.Join(root, own), true
}

// start starts a manager in the group.
func (g controlGroup) start(t *testing.T, l *lab.Lab, flags ...string) *bench {
	t.Helper()
	script := filepath.Join(t.TempDir(), "limited-manager")
	text := fmt.Sprintf("#!/bin/sh\necho $$ >%s/cgroup.procs && exec %s \"$@\"\n", g.dir, l.Path("bin", "machine-controllers"))
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil { //nolint:gosec // it is to be run
		t.Fatal(err)
	}
	flags = append([]string{fmt.Sprintf("--max-concurrent-runs=%d", *memoryRuns), "--drift-interval=24h"}, flags...)
	manager, err := l.StartInstance(contextOf(t), lab.Instance{Binary: script}, flags...)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{Lab: l, manager: manager}
	if b.token, err = l.MetricsToken(contextOf(t)); err != nil {
		t.Fatal(err)
	}
	return b
}

// kills returns how many processes of the group the kernel has killed for want of memory.
func (g controlGroup) kills(t *testing.T) int {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(g.dir, g.events))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		if name, value, _ := strings.Cut(strings.TrimSpace(line), " "); name == "oom_kill" {
			if count, err := strconv.Atoi(value); err == nil {
				return count
			}
		}
	}
	t.Fatalf("%s does not say how many processes were killed", g.events)
	return 0
}
