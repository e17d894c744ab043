package iac

import (
	"context"
	"io/fs"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/machine-iac/machine-iac-operator/internal/desired"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/internal/module/store"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/modules"
	"github.com/machine-iac/machine-iac-operator/test/shortdir"
)

func testClock() *clocktesting.FakePassiveClock {
	return clocktesting.NewFakePassiveClock(time.Unix(1700000000, 0))
}

// changedModule loads the kubemark module with something added to its main.tf, and pieces of its
// files replaced, each old by new.
func changedModule(t *testing.T, added string, replaced ...string) *module.Module {
	t.Helper()
	return changed(t, modules.FS, added, replaced...)
}

// changed returns the kubemark module or stack, with something added to its main.tf and each first
// of two pieces replaced by the second.
func changed(t *testing.T, folders fs.FS, added string, replaced ...string) *module.Module {
	t.Helper()
	return changedOf(t, folders, "kubemark", added, replaced...)
}

// changedOf returns any module or stack so.
func changedOf(t *testing.T, folders fs.FS, name, added string, replaced ...string) *module.Module {
	t.Helper()
	shipped, err := fs.Sub(folders, name)
	if err != nil {
		t.Fatal(err)
	}
	files, left := fstest.MapFS{}, len(replaced)/2
	err = fs.WalkDir(shipped, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		raw, err := fs.ReadFile(shipped, name)
		text := string(raw)
		for i := 0; i < len(replaced); i += 2 {
			if strings.Contains(text, replaced[i]) {
				left--
			}
			text = strings.Replace(text, replaced[i], replaced[i+1], 1)
		}
		if name == "main.tf" {
			text += added
		}
		files[name] = &fstest.MapFile{Data: []byte(text)}
		return err
	})
	if err != nil || left != 0 {
		t.Fatalf("changing the kubemark module: %v, %d pieces were not found once", err, left)
	}
	loaded, err := load.Module(files)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// labelling returns a module that puts one more label on its Node.
func labelling(t *testing.T, value string) *module.Module {
	t.Helper()
	return changedModule(t, "", `"kubernetes.io/os"                 = "linux"`, `"kubernetes.io/os" = "linux"`+"\n"+`"example.com/made-by" = "`+value+`"`)
}

const madeBy = "example.com/made-by"

// upgrade has the Machines served by an operator that comes with another module.
func (b *bench) upgrade(loaded *module.Module, owner string) {
	b.t.Helper()
	b.loaded = []*module.Module{loaded}
	b.start(shortdir.New(b.t), owner)
}

// record returns what is recorded of a Machine's state.
func (b *bench) record(machine *machinev1beta1.Machine) record.Record {
	b.t.Helper()
	f, err := b.facts(b.t.Context(), machine)
	if err != nil {
		b.t.Fatal(err)
	}
	return f.Record
}

func conditionOf(machine *machinev1beta1.Machine, name string) metav1.Condition {
	if found := meta.FindStatusCondition(readProviderStatus(machine).Conditions, name); found != nil {
		return *found
	}
	return metav1.Condition{}
}

// checked drives a Machine until a drift check that is due has been made.
func (b *bench) checked(machine *machinev1beta1.Machine) record.DriftCheck {
	b.t.Helper()
	b.clock.SetTime(b.clock.Now().Add(2 * time.Hour))
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		_ = b.Update(b.t.Context(), machine)
		found := b.record(machine).Check
		if _, held := b.pool.Status(runs.Key(machine.UID)); !held && found != nil && found.At.Equal(b.clock.Now().UTC()) {
			return *found
		}
		time.Sleep(pause)
	}
	b.t.Fatal("no drift check was made")
	return record.DriftCheck{}
}

func TestAHeldMachineIsServedWithItsOwnModule(t *testing.T) {
	b := newBench(t)
	b.upgrade(labelling(t, "older"), "owner-1")
	older := b.catalog.Modules()[0]
	machine := b.machine()
	b.bring(machine)
	before := b.node(machine)

	newer := changedModule(t, "", "condition     = var.provider_spec.cpu > 0", "condition     = var.provider_spec.cpu > 100")
	b.upgrade(newer, "owner-2")
	if err := b.drive(b.Update, machine); err != nil {
		t.Fatalf("Update: %v", err)
	}
	if starts := b.starts(); starts > 0 {
		t.Errorf("a held Machine cost %d engine processes", starts)
	}
	held := conditionOf(machine, moduleCurrent)
	if held.Status != metav1.ConditionFalse || held.Reason != "UpdateHeld" ||
		!strings.Contains(held.Message, shortDigest(older.Reference())) || !strings.Contains(held.Message, shortDigest(newer.Reference())) {
		t.Errorf("condition %+v, want it to say that the Machine is held, with both digests", held)
	}

	set(machine, b, "zone", "zone-b")
	if err := b.drive(b.Update, machine); err != nil {
		t.Fatalf("Update of the zone: %v", err)
	}
	after := b.node(machine)
	if after.UID != before.UID || after.Labels[corev1.LabelTopologyZone] != "zone-b" || after.Labels[madeBy] != "older" {
		t.Errorf("labels %v, want the same Node in zone-b by the older module", after.Labels)
	}
	if found := b.checked(machine); found.Result != record.DriftNone {
		t.Errorf("drift check: %+v, want none with the module that it was made with", found)
	}
	if got := b.record(machine).Module; got != older.Reference() {
		t.Errorf("recorded is %s, want %s", got, older.Reference())
	}
	if err := b.drive(b.Delete, machine); err != nil {
		t.Fatalf("Delete: %v", err)
	}
	if b.node(machine) != nil {
		t.Error("the instance is left")
	}
}

func TestAMachineThatMayIsBroughtToTheCurrentModuleInPlace(t *testing.T) {
	b := newBench(t)
	machine := b.machine()
	b.bring(machine)
	before := b.node(machine)
	newer := labelling(t, "newer")
	b.upgrade(newer, "owner-2")
	machine.Annotations = map[string]string{desired.ModuleUpdatesAnnotation: string(desired.ModuleUpdatesInPlace)}
	if err := b.drive(b.Update, machine); err != nil {
		t.Fatalf("Update: %v", err)
	}
	if err := b.drive(b.Update, machine); err != nil {
		t.Fatalf("Update: %v", err)
	}
	if after := b.node(machine); after.UID != before.UID || after.Labels[madeBy] != "newer" {
		t.Errorf("labels %v, want the same Node, by the newer module", after.Labels)
	}
	if got := b.record(machine).Module; got != newer.Reference() {
		t.Errorf("recorded is %s, want %s", got, newer.Reference())
	}
	if now := conditionOf(machine, moduleCurrent); now.Status != metav1.ConditionTrue {
		t.Errorf("condition %+v, want True", now)
	}
	if _, err := b.modules.Load(t.Context(), b.namespace, newer.Digest()); err != nil {
		t.Errorf("the newer module is not stored: %v", err)
	}
}

func TestAMachineThatCannotGetTheCurrentModuleGoesOnWithItsOwn(t *testing.T) {
	b := newBench(t)
	b.updates = desired.ModuleUpdatesInPlace
	machine := b.machine()
	b.bring(machine)
	older := b.record(machine).Module
	before := b.node(machine)
	machine.Status.Phase = new(machinev1beta1.PhaseRunning)
	b.upgrade(changedModule(t, "", "  fixed = {", "  fixed = {\n    generation = \"2\"",
		`"kubernetes.io/os"                 = "linux"`, `"kubernetes.io/os" = "plan9"`), "owner-2")
	if err := b.drive(b.Update, machine); !isReason(err, machinev1beta1.UnsupportedChangeMachineError) || !strings.Contains(err.Error(), "replaced") {
		t.Fatalf("Update: %v, want UnsupportedChange, since it would be replaced", err)
	}
	starts := b.starts()
	if err := b.drive(b.Update, machine); !isReason(err, machinev1beta1.UnsupportedChangeMachineError) {
		t.Errorf("a second Update: %v, want UnsupportedChange", err)
	}
	if again := b.starts(); again != starts {
		t.Errorf("what was refused was planned again: %d more starts", again-starts)
	}
	provisioned := machine.DeepCopy()
	provisioned.Status.Phase = new(machinev1beta1.PhaseProvisioned)
	if err := b.drive(b.Update, provisioned); err != nil {
		t.Errorf("Update of a Machine that is on its way: %v, want nothing to hold it up", err)
	}
	for _, condition := range []metav1.Condition{conditionOf(machine, moduleCurrent), conditionOf(provisioned, moduleCurrent)} {
		if condition.Reason != "UpdateRefused" {
			t.Errorf("condition %+v, want %s", condition, "UpdateRefused")
		}
	}
	if found := b.checked(machine); found.Result != record.DriftNone {
		t.Errorf("drift check: %+v, want none", found)
	}
	set(machine, b, "zone", "zone-b")
	if err := b.drive(b.Update, machine); !isReason(err, machinev1beta1.UnsupportedChangeMachineError) {
		t.Errorf("Update of the zone: %v, want UnsupportedChange of the module", err)
	}
	deadline := time.Now().Add(patience)
	for b.node(machine).Labels[corev1.LabelTopologyZone] != "zone-b" && time.Now().Before(deadline) {
		_ = b.Update(t.Context(), machine)
		time.Sleep(pause)
	}
	after := b.node(machine)
	if after.UID != before.UID || after.Labels[corev1.LabelTopologyZone] != "zone-b" {
		t.Errorf("labels %v, want the same Node in zone-b", after.Labels)
	}
	if got := b.record(machine).Module; got != older {
		t.Errorf("recorded is %s, want %s", got, older)
	}
}

func TestAnApplyOfANewerModuleThatFailsHasItRecorded(t *testing.T) {
	b := newBench(t)
	b.updates = desired.ModuleUpdatesInPlace
	machine := b.machine()
	b.bring(machine)
	broken := labelling(t, "no label's value!")
	b.upgrade(broken, "owner-2")
	_ = b.Update(t.Context(), machine) // once: the provider takes what it has sent for what there is, so that a second try finds nothing to change
	events := b.warnings()
	for deadline := time.Now().Add(patience); len(events) == 0 && time.Now().Before(deadline); events = b.warnings() {
		time.Sleep(pause)
	}
	if len(events) == 0 || !strings.Contains(events[0], "FailedUpdate") || !strings.Contains(events[0], madeBy) {
		t.Fatalf("events %q, want the API server's refusal", events)
	}
	if got := b.record(machine).Module; got != broken.Reference() {
		t.Errorf("recorded is %s, want %s, which knows what there may be", got, broken.Reference())
	}
	if err := b.drive(b.Delete, machine); err != nil || b.node(machine) != nil {
		t.Errorf("Delete: %v, want the instance gone", err)
	}
}

func TestWhatIsHalfMadeIsFinishedWithWhatBeganIt(t *testing.T) {
	b := newBench(t)
	b.upgrade(labelling(t, "older"), "owner-1")
	older := b.catalog.Modules()[0]
	machine := b.machine()
	b.bring(machine)
	b.crash(machine, older)
	b.upgrade(labelling(t, "newer"), "owner-1")
	b.bring(machine)
	if got := b.node(machine).Labels[madeBy]; got != "older" {
		t.Errorf("the Node was made by the %s module, want the one that began", got)
	}
	if got := b.record(machine).Module; got != older.Reference() {
		t.Errorf("recorded is %s, want %s", got, older.Reference())
	}
}

// crash leaves a Machine as a manager does that is killed after its engine has made the instance,
// before the state was saved.
func (b *bench) crash(machine *machinev1beta1.Machine, made *module.Module) {
	b.t.Helper()
	key := state.KeyFor(machine.Namespace, machine.UID)
	b.loseState(machine)
	catalog, err := module.NewCatalog(made)
	if err != nil {
		b.t.Fatal(err)
	}
	reader, err := desired.NewReader(desired.Options{Client: b.client, Catalog: catalog})
	if err != nil {
		b.t.Fatal(err)
	}
	choice, err := reader.Choose(b.t.Context(), machine, &lifecycle.Facts{}, runs.Create)
	if err != nil {
		b.t.Fatal(err)
	}
	lost := decided(b.Actuator, machine, choice.State, &lifecycle.Facts{}, lifecycle.Decision{Action: lifecycle.ActionStart, Operation: runs.Create})
	_, err = b.store.Acquire(b.t.Context(), key, state.AcquireOptions{
		Lock:   state.Lock{Owner: b.owner, Run: lost.id, Epoch: b.leads.Epoch()},
		Decide: func(_ context.Context, seen *state.Snapshot) (state.Change, error) { return lost.begin(seen) },
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// shortDigest returns as much of the digest in a reference as people compare.
func shortDigest(reference string) string { return store.DigestOf(reference)[:12] }

func TestAModuleThatIsLostIsReplacedInPlaceAndReported(t *testing.T) {
	b := newBench(t)
	machine := b.machine()
	b.bring(machine)
	before := b.node(machine)
	stored := &corev1.Secret{}
	for _, loaded := range b.catalog.Modules() {
		stored.Namespace, stored.Name = b.namespace, "machine-iac-module-"+loaded.Digest()
		if err := b.client.Delete(t.Context(), stored); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
	newer := labelling(t, "newer")
	b.upgrade(newer, "owner-2")
	if err := b.drive(b.Update, machine); err != nil {
		t.Fatalf("Update: %v", err)
	}
	if after := b.node(machine); after.UID != before.UID || after.Labels[madeBy] != "newer" {
		t.Errorf("labels %v, want the same Node, by the newer module", after.Labels)
	}
	if events := b.warnings(); len(events) != 1 || !strings.Contains(events[0], "ModuleLost") || !strings.Contains(events[0], shortDigest(newer.Reference())) {
		t.Errorf("events %q, want one ModuleLost", events)
	}
}

func TestAHeldMachineCostsNoMoreReadsThanAnother(t *testing.T) {
	b := newBench(t)
	machine := b.machine()
	b.bring(machine)
	reads := &atomic.Int32{}
	live, err := client.NewWithWatch(plane.Config, client.Options{Scheme: plane.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	b.client = interceptor.NewClient(live, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			reads.Add(1)
			return c.Get(ctx, key, object, options...)
		},
	})
	cost := func() int32 {
		t.Helper()
		if err := b.drive(b.Update, machine); err != nil { // it may look for the module once
			t.Fatal(err)
		}
		before := reads.Load()
		if err := b.drive(b.Update, machine); err != nil {
			t.Fatal(err)
		}
		return reads.Load() - before
	}
	b.start(shortdir.New(t), "owner-2")
	settled := cost()
	b.upgrade(labelling(t, "newer"), "owner-3")
	if held := cost(); held != settled || settled == 0 {
		t.Errorf("a held Machine costs %d reads, want %d as before", held, settled)
	}
	if conditionOf(machine, moduleCurrent).Reason != "UpdateHeld" {
		t.Error("the Machine is not held; this shows nothing")
	}
}

func TestModulesAreStoredForStatesFromBefore(t *testing.T) {
	b := newBench(t)
	machine := b.machine()
	b.bring(machine)
	digest := store.DigestOf(b.record(machine).Module)
	stored := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "machine-iac-module-" + digest}}
	if err := b.client.Delete(t.Context(), stored); err != nil {
		t.Fatalf("the module was not stored before the create: %v", err)
	}
	b.start(shortdir.New(t), "owner-2")
	if _, err := b.orphans().Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.upgrade(labelling(t, "newer"), "owner-3")
	orphans := b.orphans()
	for range 2 { // a module that a state needs is kept, however long it is not the current one
		if _, err := orphans.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.clock.SetTime(b.clock.Now().Add(2 * time.Hour))
	}
	if _, err := b.modules.Load(t.Context(), b.namespace, digest); err != nil {
		t.Errorf("the module of the state: %v, want it stored", err)
	}
	if got := gaugeOf(t, orphans, "machine_iac_machines_module_held"); got != 1 {
		t.Errorf("counted %v Machines that are held, want one", got)
	}
	if err := b.drive(b.Delete, machine); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := orphans.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.clock.SetTime(b.clock.Now().Add(2 * time.Hour))
	}
	b.start(shortdir.New(t), "owner-4") // which remembers nothing
	if _, err := b.modules.Load(t.Context(), b.namespace, digest); !store.IsMissing(err) {
		t.Errorf("the module that nothing needs any more: %v, want it gone", err)
	}
}

func gaugeOf(t *testing.T, collector prometheus.Collector, name string) float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(collector)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			return family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("there is no %s", name)
	return 0
}
