package iac

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/engine/workdir"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/test/apiproxy"
	"github.com/machine-iac/machine-iac-operator/test/shortdir"
)

const togetherText = "Executed in a batch of "

// atOnce has a verb begin for Machines, all of whose runs wait before the first begins, and waits
// until those have ended. It returns how often the engine was started meanwhile.
func (b *bench) atOnce(verb func(context.Context, *machinev1beta1.Machine) error, machines []*machinev1beta1.Machine) int64 {
	b.t.Helper()
	held := make(blocker)
	for i := range 4 {
		name := runs.Key(fmt.Sprint("blocker-", i))
		if _, err := b.pool.Submit(runs.Request{Key: name, Group: string(name), Operation: runs.Destroy, Task: held}); err != nil {
			b.t.Fatal(err)
		}
	}
	for _, machine := range machines {
		if err := verb(b.t.Context(), machine); err != nil {
			if _, busy := actuators.AsRequeueAfter(err); !busy {
				b.t.Fatal(err)
			}
		}
		if run, _ := b.pool.Status(runs.Key(machine.UID)); run.Phase != runs.Queued {
			b.t.Fatalf("Machine %s: its run is %+v, want it to wait", machine.Name, run)
		}
	}
	starts := b.starts()
	close(held)
	b.ended(machines)
	return b.starts() - starts
}

// ended waits until no Machine has a run that is active.
func (b *bench) ended(machines []*machinev1beta1.Machine) {
	b.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(pause) {
		active := 0
		for _, machine := range machines {
			if run, _ := b.pool.Status(runs.Key(machine.UID)); run.Active() {
				active++
			}
		}
		if active == 0 {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("%d runs have not ended", active)
		}
	}
}

func (b *bench) machines(count int, mods ...func(map[string]any)) []*machinev1beta1.Machine {
	made := make([]*machinev1beta1.Machine, count)
	for i := range made {
		made[i] = b.machine(mods...)
	}
	return made
}

// wantMade checks that a Machine has one instance, which its state has, and that nothing is left of
// the run.
func (b *bench) wantMade(machine *machinev1beta1.Machine) {
	b.t.Helper()
	if err := b.drive(b.Update, machine); err != nil {
		b.t.Errorf("Machine %s: Update: %v", machine.Name, err)
	}
	if id := ptr.Deref(machine.Spec.ProviderID, ""); b.node(machine) == nil || !strings.Contains(id, string(machine.UID)) {
		b.t.Errorf("Machine %s: its instance is there: %t, its providerID is %q", machine.Name, b.node(machine) != nil, id)
	}
	snapshot, err := b.store.Get(b.t.Context(), state.KeyFor(machine.Namespace, machine.UID))
	if err != nil {
		b.t.Fatal(err)
	}
	if kept := b.record(machine); snapshot.Lock != nil || kept.Intent != nil {
		b.t.Errorf("Machine %s: lock %+v, intent %+v are left", machine.Name, snapshot.Lock, kept.Intent)
	}
	if parsed, err := snapshot.State(); err != nil || len(parsed.Managed()) == 0 {
		b.t.Errorf("Machine %s: its state knows nothing (%v)", machine.Name, err)
	}
}

func TestMachinesAreMadeAndRemovedByOneProcess(t *testing.T) {
	b := newBench(t)
	b.batch = 10
	b.start(shortdir.New(b.t), "owner-1")
	b.bring(b.machine()) // the module is prepared
	machines := b.machines(10)
	// A slot that was not used before asks the engine for its version first.
	if starts := b.atOnce(b.Create, machines); starts > 2 {
		t.Errorf("%d processes of the engine made %d Machines, want one", starts, len(machines))
	}
	for _, machine := range machines {
		b.wantMade(machine)
		output := b.output(machine)
		if !strings.Contains(output, togetherText+"10 Machines") || !strings.Contains(output, "kubectl_manifest.this: Creation complete") || strings.Contains(output, "module.call") {
			t.Errorf("Machine %s: the output is %q, want its own part of it", machine.Name, output)
		}
	}
	// Another process checks them, alone: what was made together is what each would have made.
	b.batch = 1
	b.start(shortdir.New(b.t), "owner-2")
	for _, machine := range machines[:2] {
		b.fallDue([]*machinev1beta1.Machine{machine})
		b.wantCheck(machine, record.DriftNone, false)
	}
	b.batch = 10
	b.start(shortdir.New(b.t), "owner-3")
	b.bring(b.machine())
	if starts := b.atOnce(b.Delete, machines); starts > 2 {
		t.Errorf("%d processes of the engine removed %d Machines, want one", starts, len(machines))
	}
	for _, machine := range machines {
		if err := b.drive(b.Delete, machine); err != nil || b.node(machine) != nil {
			t.Errorf("Machine %s: Delete: %v, Node %v", machine.Name, err, b.node(machine))
		}
	}
	if states, err := b.store.List(t.Context(), b.namespace); err != nil || len(states) != 2 {
		t.Errorf("%d states are left (%v), want those of the two Machines that stay", len(states), err)
	}
}

func TestAMachineThatCannotBeMadeDoesNotHarmThoseOfItsBatch(t *testing.T) {
	b := newBench(t)
	b.batch = 10
	dir := shortdir.New(b.t)
	b.start(dir, "owner-1")
	proxy, _ := b.watched()
	machines := b.machines(4, func(spec map[string]any) { spec["credentialsSecret"] = map[string]any{"name": "watched"} })
	fault := proxy.Inject(apiproxy.Fault{At: apiproxy.BeforeRequest, Match: about(machines[1]), Status: http.StatusForbidden})
	b.atOnce(b.Create, machines)
	run, _ := b.pool.Status(runs.Key(machines[1].UID))
	if run.Phase != runs.Failed || strings.Contains(run.Err.Error(), "module.call") || !strings.Contains(run.Err.Error(), "the proxy responds 403") {
		t.Errorf("the run of the Machine that cannot be made is %+v, want its own error", run)
	}
	for _, n := range []int{0, 2, 3} {
		if run, _ := b.pool.Status(runs.Key(machines[n].UID)); run.Failures > 0 {
			t.Errorf("Machine %d: its run has failed: %+v", n, run)
		}
		b.wantMade(machines[n])
	}
	fault.Lift()
	b.comesRight(b.Create, machines[1])
	b.wantMade(machines[1])
	b.nothingIsLeft(dir)
}

// TestAMachineThatHangsDelaysNoOtherOfItsBatch takes as long as an engine lets pass between two
// states that it stores while it works.
func TestAMachineThatHangsDelaysNoOtherOfItsBatch(t *testing.T) {
	b := newBench(t)
	b.batch = 10
	dir := shortdir.New(b.t)
	b.start(dir, "owner-1")
	proxy, _ := b.watched()
	machines := b.machines(4, func(spec map[string]any) { spec["credentialsSecret"] = map[string]any{"name": "watched"} })
	hangs, others := machines[2], []*machinev1beta1.Machine{machines[0], machines[1], machines[3]}
	for _, verb := range []struct {
		name string
		do   func(context.Context, *machinev1beta1.Machine) error
	}{{"create", b.Create}, {"delete", b.Delete}} {
		hold := proxy.Hold(apiproxy.BeforeRequest, func(request *http.Request) bool {
			return about(hangs)(request) && (verb.name == "create" || request.Method == http.MethodDelete)
		})
		waited := make(chan struct{})
		go func() {
			defer close(waited)
			defer hold.Lift()
			<-hold.Reached
			b.ended(others)
			if run, _ := b.pool.Status(runs.Key(hangs.UID)); run.Phase != runs.Running {
				t.Errorf("%s: the run that hangs is %+v, want it to go on", verb.name, run)
			}
			for _, machine := range others {
				if there := b.node(machine) != nil; there != (verb.name == "create") {
					t.Errorf("%s: Machine %s has an instance: %t", verb.name, machine.Name, there)
				}
				if run, known := b.pool.Status(runs.Key(machine.UID)); known && run.Failures > 0 {
					t.Errorf("%s: Machine %s: %+v", verb.name, machine.Name, run)
				}
			}
		}()
		b.atOnce(verb.do, machines)
		<-waited
		for _, machine := range machines {
			if verb.name == "create" {
				b.wantMade(machine)
				if output := b.output(machine); !strings.Contains(output, togetherText+"4 Machines") {
					t.Errorf("Machine %s: the output is %q, want that of a batch", machine.Name, output)
				}
			}
		}
	}
	b.nothingIsLeft(dir)
}

// about matches requests about the instance of a Machine.
func about(machine *machinev1beta1.Machine) func(*http.Request) bool {
	return func(request *http.Request) bool { return strings.HasSuffix(request.URL.Path, "/nodes/"+machine.Name) }
}

// nothingIsLeft checks that there is no folder of a run, which may have secrets.
// The Machines of a batch settle before its process has ended.
func (b *bench) nothingIsLeft(dir string) {
	b.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(pause) {
		left, err := filepath.Glob(filepath.Join(dir, "runs", "*"))
		if err == nil && len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("folders %q are left (%v)", left, err)
		}
	}
}

func TestABatchWhoseEngineIsKilledMakesNothingTwice(t *testing.T) {
	b := newBench(t)
	b.batch = 10
	dir := shortdir.New(b.t)
	b.start(dir, "owner-1")
	proxy, _ := b.watched()
	machines := b.machines(4, func(spec map[string]any) { spec["credentialsSecret"] = map[string]any{"name": "watched"} })
	hold := proxy.Hold(apiproxy.BeforeRequest, about(machines[2]))
	killed := make(chan error, 1)
	go func() {
		<-hold.Reached
		time.Sleep(500 * time.Millisecond) // the others are made meanwhile
		_, err := workdir.KillProcesses(filepath.Join(dir, "runs"))
		hold.Lift()
		killed <- err
	}()
	b.atOnce(b.Create, machines)
	if err := <-killed; err != nil {
		t.Fatal(err)
	}
	before := map[string]types.UID{}
	for _, machine := range machines {
		if node := b.node(machine); node != nil {
			before[machine.Name] = node.UID
		}
	}
	for _, machine := range machines {
		b.comesRight(b.Create, machine)
		b.wantMade(machine)
		if was := before[machine.Name]; was != "" && b.node(machine).UID != was {
			t.Errorf("Machine %s: its instance was made twice", machine.Name)
		}
	}
	if len(before) == 0 {
		t.Error("nothing was made when the engine was killed; the test shows nothing")
	}
	b.nothingIsLeft(dir)
}

func TestAStateOfABatchThatCannotBeSavedIsSavedLater(t *testing.T) {
	b := newBench(t)
	b.batch = 10
	machines := b.machines(3)
	own := state.KeyFor(machines[1].Namespace, machines[1].UID)
	live, err := client.NewWithWatch(plane.Config, client.Options{Scheme: plane.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	var broken, refused atomic.Bool
	broken.Store(true)
	b.client = interceptor.NewClient(live, interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
			secret, ok := object.(*corev1.Secret)
			if !ok || !broken.Load() || secret.Name != own.Name || !refused.Load() && len(secret.Data["tfstate"]) == 0 {
				return c.Update(ctx, object, options...)
			}
			refused.Store(true)
			return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, secret.Name, errors.New("not now"))
		},
	})
	dir := shortdir.New(b.t)
	b.start(dir, "owner-1")
	b.atOnce(b.Create, machines)
	if !refused.Load() {
		t.Fatal("no state was refused; the test shows nothing")
	}
	for _, n := range []int{0, 2} {
		b.comesRight(b.Create, machines[n])
		b.wantMade(machines[n])
	}
	if left, err := filepath.Glob(filepath.Join(dir, "runs", "*", "machine-iac-parts", "*")); err != nil || len(left) != 1 {
		t.Fatalf("the parts %q of the batch are kept (%v), want the one that could not be saved", left, err)
	}
	kept, err := b.runners[v1alpha1.EngineTerraform].AbandonedRuns()
	if err != nil || len(kept) != 1 {
		t.Fatalf("the runs %v are kept (%v), want the one whose state could not be saved", kept, err)
	}
	unsaved, err := kept[0].Unsaved(nil, true)
	if err != nil || !strings.Contains(string(unsaved), machines[1].Name) || strings.Contains(string(unsaved), machines[0].Name) {
		t.Errorf("what is kept is not the state of that Machine alone (%v): %s", err, unsaved)
	}
	was := b.node(machines[1])
	broken.Store(false)
	b.comesRight(b.Create, machines[1])
	b.wantMade(machines[1])
	if was == nil || b.node(machines[1]).UID != was.UID {
		t.Error("the instance was made twice")
	}
	b.nothingIsLeft(dir)
}

// cutOff is an engine that truncates the state that it could not save, as a nearly full disk does.
const cutOff = `#!/bin/sh
%s "$@"
code=$?
if [ -s errored.tfstate ]; then head -c %d errored.tfstate > cut && mv cut errored.tfstate; fi
exit $code
`

// TestACutOffStateIsLookedUp loses the states of Machines, alone and in a batch, after the engine
// reported everything as created.
func TestACutOffStateIsLookedUp(t *testing.T) {
	parallel(t)
	for name, tc := range map[string]struct{ machines, batch, length int }{
		"one, nothing left": {machines: 1},
		"one, half left":    {machines: 1, length: 300},
		"three, half left":  {machines: 3, batch: 10, length: 300},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.batch, b.unconfined = tc.batch, true
			real, err := foundTofu()
			if err != nil {
				t.Fatal(err)
			}
			path, err := filepath.Abs(real.Path)
			if err != nil {
				t.Fatal(err)
			}
			b.wrapped = filepath.Join(t.TempDir(), "tofu")
			if err := os.WriteFile(b.wrapped, fmt.Appendf(nil, cutOff, path, tc.length), 0o700); err != nil {
				t.Fatal(err)
			}
			live, err := client.NewWithWatch(plane.Config, client.Options{Scheme: plane.Scheme})
			if err != nil {
				t.Fatal(err)
			}
			var broken atomic.Bool
			b.client = interceptor.NewClient(live, interceptor.Funcs{
				Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
					secret, ok := object.(*corev1.Secret)
					if !ok || !broken.Load() || len(secret.Data["tfstate"]) == 0 {
						return c.Update(ctx, object, options...)
					}
					return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, secret.Name, errors.New("not now"))
				},
			})
			dir := shortdir.New(b.t)
			b.start(dir, "owner-1")
			machines := b.machines(tc.machines)
			broken.Store(true)
			b.atOnce(b.Create, machines)
			before := map[string]types.UID{}
			for _, machine := range machines {
				node := b.node(machine)
				if node == nil {
					t.Fatalf("Machine %s: its instance was not made; the test shows nothing", machine.Name)
				}
				before[machine.Name] = node.UID
				run, _ := b.pool.Status(runs.Key(machine.UID))
				if intent := b.record(machine).Intent; run.Phase != runs.Failed || intent == nil || intent.AbandonedRun() == "" {
					t.Errorf("Machine %s: run %+v, intent %+v, want a failure after which the instance may exist", machine.Name, run, intent)
				}
			}
			b.nothingIsLeft(dir)
			broken.Store(false)
			for _, machine := range machines {
				b.comesRight(b.Create, machine)
				b.wantMade(machine)
				if b.node(machine).UID != before[machine.Name] {
					t.Errorf("Machine %s: its instance was made twice", machine.Name)
				}
			}
		})
	}
}

func TestInstancesAreLookedAtByOneProcess(t *testing.T) {
	b := newBench(t)
	b.batch = 10
	b.upgrade(changedModule(t, "", withInstanceCheck...), "owner-1")
	proxy, requests := b.watched()
	machines := b.fleet(6, func(spec map[string]any) { spec["credentialsSecret"] = map[string]any{"name": "watched"} })
	look := func() int64 {
		t.Helper()
		b.later(9 * time.Minute)
		held := make(blocker)
		if _, err := b.pool.Submit(runs.Request{Key: "blocker", Group: "blocker", Operation: runs.Drift, Task: held}); err != nil {
			t.Fatal(err)
		}
		for _, machine := range machines {
			if err := b.Update(t.Context(), machine); err != nil {
				t.Fatal(err)
			}
		}
		starts := b.starts()
		close(held)
		for _, machine := range machines {
			b.looked(machine)
		}
		return b.starts() - starts
	}
	requests("")
	if starts := look(); starts != 1 {
		t.Errorf("%d processes looked at %d instances, want one", starts, len(machines))
	}
	if got := requests(machines[1].Name); len(got) != 1 {
		t.Errorf("the look at an instance made the requests %q, want one", got)
	}
	for _, machine := range machines {
		if known := b.looks.Known(machine.UID); !known.Gone.IsZero() || known.Failed {
			t.Errorf("Machine %s: %+v, want its instance seen", machine.Name, known)
		}
	}

	// One that cannot be read costs the others their batch once.
	fault := proxy.Inject(apiproxy.Fault{At: apiproxy.BeforeRequest, Match: about(machines[3]), Status: http.StatusForbidden})
	if err := b.client.Delete(t.Context(), b.node(machines[5])); err != nil {
		t.Fatal(err)
	}
	if starts := look(); starts < 7 {
		t.Errorf("%d processes, want one for all that failed, and one for each", starts)
	}
	for n, machine := range machines {
		if known := b.looks.Known(machine.UID); known.Gone.IsZero() != (n != 5) || known.Failed != (n == 3) {
			t.Errorf("Machine %d: %+v, want 5 gone and 3 failed", n, known)
		}
	}
	machines = machines[:5]
	if starts := look(); starts != 2 {
		t.Errorf("%d processes, want one for four instances, and one for that which cannot be read", starts)
	}
	fault.Lift()
}
