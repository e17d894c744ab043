package iac

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-iac/machine-iac-operator/internal/engine/workdir"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/test/apiproxy"
	"github.com/machine-iac/machine-iac-operator/test/shortdir"
)

// seeing is the kubemark module, which sees changes of a Node's labels.
var seeing = []string{`["metadata.annotations", "metadata.labels", "spec.taints"]`, `["metadata.annotations"]`}

// fleet makes so many Machines and their instances.
func (b *bench) fleet(count int, mods ...func(map[string]any)) []*machinev1beta1.Machine {
	b.t.Helper()
	machines := make([]*machinev1beta1.Machine, count)
	for i := range machines {
		machines[i] = b.machine(mods...)
		_ = b.Create(b.t.Context(), machines[i]) // it has begun
	}
	for _, machine := range machines {
		b.bring(machine)
	}
	return machines
}

// blocker is a task that lasts until it is released.
type blocker chan struct{}

func (blocker) Intend(context.Context) error        { return nil }
func (t blocker) Execute(context.Context) error     { <-t; return nil }
func (blocker) Settle(context.Context, error) error { return nil }

// fallDue has the drift of Machines checked, all of which wait before the first check begins. It
// returns how often the engine was started meanwhile.
func (b *bench) fallDue(machines []*machinev1beta1.Machine) int64 {
	b.t.Helper()
	b.later(2 * time.Hour)
	first := make(blocker)
	if _, err := b.pool.Submit(runs.Request{Key: "blocker", Group: "blocker", Operation: runs.Drift, Task: first}); err != nil {
		b.t.Fatal(err)
	}
	for _, machine := range machines {
		if err := b.Update(b.t.Context(), machine); err != nil {
			b.t.Fatal(err)
		}
		if run, _ := b.pool.Status(runs.Key(machine.UID)); run.Phase != runs.Queued {
			b.t.Fatalf("Machine %s: its run is %+v, want it to wait", machine.Name, run)
		}
	}
	starts := b.starts()
	close(first)
	for deadline := time.Now().Add(patience); ; time.Sleep(pause) {
		active := 0
		for _, machine := range machines {
			if run, _ := b.pool.Status(runs.Key(machine.UID)); run.Active() {
				active++
			}
		}
		if active == 0 {
			return b.starts() - starts
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("%d checks are not made", active)
		}
	}
}

// wantCheck checks what is recorded of a check that was made now, and whether it was made together
// with others.
func (b *bench) wantCheck(machine *machinev1beta1.Machine, want record.DriftResult, together bool) {
	b.t.Helper()
	kept := b.record(machine)
	if kept.Check == nil || kept.Check.Result != want || !kept.Check.At.Equal(b.clock.Now().UTC()) {
		b.t.Errorf("Machine %s: recorded %+v, want %s", machine.Name, kept.Check, want)
	}
	snapshot, err := b.store.Get(b.t.Context(), state.KeyFor(machine.Namespace, machine.UID))
	if err != nil {
		b.t.Fatal(err)
	}
	if snapshot.Lock != nil {
		b.t.Errorf("Machine %s: the lock is left: %+v", machine.Name, snapshot.Lock)
	}
	if output := b.output(machine); strings.Contains(output, "Planned in a batch") != together {
		b.t.Errorf("Machine %s: the output is %q; made together with others: want %t", machine.Name, output, together)
	}
}

func TestMachinesThatAreAsAppliedAreCheckedByOneProcess(t *testing.T) {
	b := newBench(t)
	b.batch = 10
	b.start(shortdir.New(b.t), "owner-1")
	machines := b.fleet(10)
	if starts := b.fallDue(machines); starts != 1 {
		t.Errorf("%d processes of the engine for %d Machines, want one", starts, len(machines))
	}
	for _, machine := range machines {
		b.wantCheck(machine, record.DriftNone, true)
	}
}

func TestMachinesThatAreNotAsAppliedAreCheckedAlone(t *testing.T) {
	b := newBench(t)
	b.batch = 10
	b.upgrade(changedModule(t, "", seeing...), "owner-1")
	machines := b.fleet(5)
	meddled := b.node(machines[1])
	meddled.Labels[corev1.LabelTopologyZone] = "elsewhere"
	if err := b.client.Update(t.Context(), meddled); err != nil {
		t.Fatal(err)
	}
	if err := b.client.Delete(t.Context(), b.node(machines[2])); err != nil {
		t.Fatal(err)
	}
	b.rewriteOutput(machines[3], "zone", "elsewhere")
	b.fallDue(machines)
	b.wantCheck(machines[0], record.DriftNone, true)
	b.wantCheck(machines[1], record.DriftChanged, false)
	b.wantCheck(machines[2], record.DriftMissing, false)
	b.wantCheck(machines[3], record.DriftNone, false)
	b.wantCheck(machines[4], record.DriftNone, true)
	if kept := b.record(machines[1]).Check; !strings.Contains(kept.Summary, " kubectl_manifest.this would change in ") || strings.Contains(kept.Summary, "module.call") {
		t.Errorf("summary %q, want that of a check alone", kept.Summary)
	}
	f, err := b.facts(t.Context(), machines[3])
	if err != nil {
		t.Fatal(err)
	}
	if got := string(f.State.Outputs["zone"].Value); got != `"zone-a"` {
		t.Errorf("the output is %s, want what has changed taken over", got)
	}

	// What is not as applied does not cost the others their batch again.
	starts := b.fallDue([]*machinev1beta1.Machine{machines[0], machines[1], machines[4]})
	b.wantCheck(machines[0], record.DriftNone, true)
	b.wantCheck(machines[1], record.DriftChanged, false)
	if starts != 3 {
		t.Errorf("%d processes, want one for two Machines, and a plan that is read for the one that has drifted", starts)
	}
}

// rewriteOutput has the state of a Machine say something else of an output.
func (b *bench) rewriteOutput(machine *machinev1beta1.Machine, name, value string) {
	b.t.Helper()
	session, err := b.store.Acquire(b.t.Context(), state.KeyFor(machine.Namespace, machine.UID), state.AcquireOptions{Lock: state.Lock{Owner: b.owner, Run: "rewrite", Operation: "update"}})
	if err != nil {
		b.t.Fatal(err)
	}
	snapshot, err := session.Snapshot(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	var content map[string]any
	if err := json.Unmarshal(snapshot.Raw, &content); err != nil {
		b.t.Fatal(err)
	}
	content["outputs"].(map[string]any)[name].(map[string]any)["value"] = value
	content["serial"] = content["serial"].(float64) + 1
	raw, err := json.Marshal(content)
	if err == nil {
		err = session.Put(b.t.Context(), raw)
	}
	if err == nil {
		err = session.Release(b.t.Context(), nil)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

func TestABatchThatFailsLeavesEachToItself(t *testing.T) {
	b := newBench(t)
	b.batch = 10
	dir := shortdir.New(b.t)
	b.start(dir, "owner-1")
	proxy, _ := b.watched()
	machines := b.fleet(3, func(spec map[string]any) { spec["credentialsSecret"] = map[string]any{"name": "watched"} })
	fault := proxy.Inject(apiproxy.Fault{At: apiproxy.BeforeRequest, Match: about(machines[1]), Status: http.StatusForbidden})
	b.fallDue(machines)
	fault.Lift()
	b.wantCheck(machines[0], record.DriftNone, false)
	b.wantCheck(machines[2], record.DriftNone, false)
	if run, _ := b.pool.Status(runs.Key(machines[1].UID)); run.Phase != runs.Failed || run.Failures != 1 || strings.Contains(run.Err.Error(), "module.call") {
		t.Errorf("the run of the Machine that cannot be read is %+v, want it to have failed once, alone", run)
	}

	hold := proxy.Hold(apiproxy.BeforeRequest, about(machines[2]))
	killed := make(chan error, 1)
	go func() {
		<-hold.Reached
		_, err := workdir.KillProcesses(filepath.Join(dir, "runs"))
		hold.Lift()
		killed <- err
	}()
	two := []*machinev1beta1.Machine{machines[0], machines[2]}
	if starts := b.fallDue(two); starts != 3 {
		t.Errorf("%d processes, want one that was killed, and one for each Machine", starts)
	}
	if err := <-killed; err != nil {
		t.Fatal(err)
	}
	b.wantCheck(machines[0], record.DriftNone, false)
	b.wantCheck(machines[2], record.DriftNone, false)
	if left, err := filepath.Glob(filepath.Join(dir, "runs", "*")); err != nil || len(left) > 0 {
		t.Errorf("folders %q are left (%v), want none with the inputs of a batch", left, err)
	}
}

func TestAModuleThatAlwaysWarnsIsCheckedAlone(t *testing.T) {
	b := newBench(t)
	b.batch = 10
	b.upgrade(changedModule(t, `
check "made" {
  assert {
    condition     = kubectl_manifest.this.uid == ""
    error_message = "There is an instance."
  }
}
`), "owner-1")
	machines := b.fleet(4)
	for n, want := range []int64{5, 5, 5, 4} {
		if starts := b.fallDue(machines); starts != want {
			t.Errorf("check %d of four Machines: %d processes, want %d", n+1, starts, want)
		}
		for _, machine := range machines {
			b.wantCheck(machine, record.DriftNone, false)
		}
	}
}
