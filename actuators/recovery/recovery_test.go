package recovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/actuators/reporting"
	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/actuators/terraform"
	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/engine/tofu"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/internal/state/backend"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
	"github.com/machine-iac/machine-iac-operator/test/shortdir"
)

// plane is shared by the tests of this package: an API server takes seconds to start.
var plane *controlplane.ControlPlane

func TestMain(m *testing.M) {
	var err error
	if plane, err = controlplane.Start(controlplane.Default); err != nil {
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
	code := m.Run()
	if err := plane.Stop(); err != nil {
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
	}
	os.Exit(code)
}

// leader is in the epoch of its holder; dead are the holders whose engines can act no more.
type leader struct {
	holder string
	dead   map[string]bool
}

func (l leader) Epoch() state.Epoch { return epochOf(l.holder) }

func (leader) Began() time.Time { return time.Time{} }

func (leader) Confirm(context.Context) error { return nil }

func (l leader) DeadIn(_ context.Context, held state.Epoch) (time.Duration, error) {
	if l.dead[held.Holder] {
		return 0, nil
	}
	return time.Second, nil
}

func epochOf(holder string) state.Epoch {
	return state.Epoch{Lease: "lease", Transitions: 1, Holder: holder}
}

// process is a manager process with a namespace and a work folder.
type process struct {
	*Recovery
	t         *testing.T
	namespace string
	store     *state.Store
	work      string
}

// abandon writes the workspace of a run that has died with a state that it could not save.
func abandon(t *testing.T, work, id string, who Identity, raw string) {
	t.Helper()
	folder := filepath.Join(work, "runs", id)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	run, err := json.Marshal(map[string]any{"id": id, "identity": who})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"run.json": string(run), "errored.tfstate": raw} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func newProcess(t *testing.T, owner string, dead ...string) *process {
	t.Helper()
	namespace, err := plane.Namespace(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, namespace: namespace, store: state.New(plane.Client, state.Options{}), work: shortdir.New(t)}
	p.start(owner, dead...)
	return p
}

// start starts the process anew, on the same work folder.
func (p *process) start(owner string, dead ...string) {
	p.t.Helper()
	binary, err := tofu.Find(p.t.Context(), tofu.FindOptions{Path: filepath.Join("..", "..", "bin", "tofu")})
	if err != nil {
		p.t.Fatalf("%v; run 'make tools'", err)
	}
	engine, err := tofu.New(tofu.Options{Binary: binary, WorkDir: p.work, Slots: 1, WaitDelay: time.Second})
	if err != nil {
		p.t.Fatal(err)
	}
	leads := leader{holder: owner, dead: map[string]bool{}}
	for _, one := range dead {
		leads.dead[one] = true
	}
	p.Recovery = New(Options{
		Store: p.store, Runners: map[v1alpha1.Engine]runner.Runner{v1alpha1.EngineTerraform: terraform.New(engine, backend.New(backend.Options{}))},
		Pool: runs.New(runs.Options{MaxConcurrent: 1}), Owner: owner, Leader: leads, Metrics: reporting.NewMetrics(v1alpha1.EngineTerraform),
	})
}

// recover finds what is left in the work folder, and recovers that of a Machine.
func (p *process) recover(uids ...types.UID) {
	p.t.Helper()
	p.Find()
	for _, uid := range uids {
		if err := p.Recover(p.t.Context(), uid); err != nil {
			p.t.Fatal(err)
		}
	}
	if left, err := p.options.Runners[v1alpha1.EngineTerraform].AbandonedRuns(); err != nil || len(left) > 0 {
		p.t.Errorf("%d abandoned runs are left, %v", len(left), err)
	}
}

// lock takes the lock of a Machine's state for a run, which stays.
func (p *process) lock(uid types.UID, owner, run string) *state.Session {
	p.t.Helper()
	intent := record.Intent{Operation: runs.Create, Run: run, Abandoned: "lost", Died: time.Now().Add(-time.Hour), Looked: true}
	session, err := p.store.Acquire(p.t.Context(), state.KeyFor(p.namespace, uid), state.AcquireOptions{
		Lock: state.Lock{Owner: owner, Run: run, Operation: string(runs.Create), Epoch: epochOf(owner)},
		Meta: record.NewPatch().SetIntent(intent).MetaPatch,
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return session
}

func TestAStateThatCouldNotBeSavedIsSavedAtTheNextStart(t *testing.T) {
	work, unsaved := shortdir.New(t), `{"version":4,"serial":3,"lineage":"l","outputs":{},"resources":[]}`
	p := newProcess(t, "owner-1")
	for _, uid := range []string{"kept", "gone"} {
		abandon(t, work, uid, Identity{Namespace: p.namespace, Name: uid, UID: uid, Owner: "owner-1", Run: "dead"}, unsaved)
	}
	p.lock("kept", "owner-1", "dead")
	p.work = work
	p.start("owner-1")
	p.recover("kept", "gone")
	saved, err := p.store.Get(t.Context(), state.KeyFor(p.namespace, "kept"))
	if err != nil || saved.Serial != 3 || saved.Lock != nil {
		t.Fatalf("the state of the Machine that is there: %+v, %v; want serial 3, unlocked", saved, err)
	}
	// The run looked for an earlier one's instance, and may have created one itself.
	if found, err := record.Read(saved.Meta); err != nil || found.Intent.AbandonedRun() != "dead" ||
		found.Intent.Looked || !found.Intent.Died.IsZero() {
		t.Errorf("the intent is %+v, %v; want the dead run, not looked up", found.Intent, err)
	}
	if _, err := p.store.Get(t.Context(), state.KeyFor(p.namespace, "gone")); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("the state of the Machine that is gone: %v, want none", err)
	}
}

// A nearly full disk truncates what an engine writes. The lock and the intent of the run remain.
func TestWhatIsNoStateIsDroppedAndNothingSettled(t *testing.T) {
	whole := `{"version":4,"serial":3,"lineage":"l","outputs":{},"resources":[]}`
	for name, left := range map[string]string{
		"empty": "", "its first byte": whole[:1], "half": whole[:len(whole)/2], "all but its last byte": whole[:len(whole)-1], "no state": "{}",
	} {
		work := shortdir.New(t)
		p := newProcess(t, "owner-1")
		abandon(t, work, "dead", Identity{Namespace: p.namespace, Name: "machine", UID: "machine", Owner: "owner-1", Run: "dead"}, left)
		p.lock("machine", "owner-1", "dead")
		p.work = work
		p.start("owner-1")
		p.recover("machine")
		saved, err := p.store.Get(t.Context(), state.KeyFor(p.namespace, "machine"))
		if err != nil || saved.Raw != nil || saved.Lock == nil || saved.Lock.Run != "dead" {
			t.Errorf("%s: the state is %+v, %v; want none, under the lock of the run that died", name, saved, err)
		}
		if kept, err := p.store.Orphans(t.Context(), p.namespace); err != nil || len(kept) != 0 {
			t.Errorf("%s: orphans %+v, %v; want none", name, kept, err)
		}
	}
}

func TestAnUnsavedStateThatIsBehindIsDropped(t *testing.T) {
	stateOf := func(lineage string, serial int) string {
		return fmt.Sprintf(`{"version":4,"serial":%d,"lineage":%q,"outputs":{},"resources":[{"mode":"managed","type":"thing","name":"this",
			"provider":"p","instances":[{"attributes":{"id":"first"}}]}]}`, serial, lineage)
	}
	for name, tc := range map[string]struct{ left, want string }{
		"behind":             {left: stateOf("l", 4), want: stateOf("l", 5)},
		"of another lineage": {left: stateOf("k", 9), want: stateOf("l", 5)},
		"newer":              {left: stateOf("l", 6), want: stateOf("l", 6)},
	} {
		work := shortdir.New(t)
		p := newProcess(t, "owner-1")
		if err := p.lock("machine", "owner-1", "dead").Put(t.Context(), []byte(stateOf("l", 5))); err != nil {
			t.Fatal(err)
		}
		abandon(t, work, "dead", Identity{Namespace: p.namespace, Name: "machine", UID: "machine", Owner: "owner-1", Run: "dead"}, tc.left)
		p.work = work
		p.start("owner-1")
		p.recover("machine")
		if saved, err := p.store.Get(t.Context(), state.KeyFor(p.namespace, "machine")); err != nil || string(saved.Raw) != tc.want {
			t.Errorf("%s: the state is %s, %v; want %s", name, saved.Raw, err, tc.want)
		}
	}
}

// TestABatchIsRecoveredForEachMachine recovers the folder of a batch whose manager died.
func TestABatchIsRecoveredForEachMachine(t *testing.T) {
	thing := func(n int) string {
		return fmt.Sprintf(`{"module":"module.call%d[\"m%d\"]","mode":"managed","type":"thing","name":"this","provider":"p","instances":[{"attributes":{"id":"of-%d"}}]}`, n, n, n)
	}
	work, names := shortdir.New(t), []string{"m-0", "m-1", "m-2"}
	p := newProcess(t, "owner-1")
	var parts []map[string]any
	for _, name := range names {
		who := Identity{Namespace: p.namespace, Name: name, UID: name, Owner: "owner-1", Run: "run-" + name}
		parts = append(parts, map[string]any{"run": who.Run, "identity": who, "lineage": "of " + name})
		p.lock(types.UID(name), "owner-1", who.Run)
	}
	abandon(t, work, "run-m-0-batch", Identity{Namespace: p.namespace, Name: names[0], UID: names[0], Owner: "owner-1", Run: "run-m-0"},
		fmt.Sprintf(`{"version":4,"terraform_version":"1.12.6","serial":3,"lineage":"l","outputs":{},"resources":[%s,%s,%s]}`, thing(0), thing(1), thing(2)))
	describe(t, filepath.Join(work, "runs", "run-m-0-batch"), parts)
	p.work = work
	p.start("owner-1")
	p.recover("m-0", "m-1", "m-2")
	for n, name := range names {
		saved, err := p.store.Get(t.Context(), state.KeyFor(p.namespace, types.UID(name)))
		if err != nil {
			t.Fatal(err)
		}
		for other := range names {
			if has := strings.Contains(string(saved.Raw), fmt.Sprint("of-", other)); has != (other == n) {
				t.Errorf("the state of %s is %s; want its own thing alone", name, saved.Raw)
			}
		}
		if saved.Lineage != "of "+name || saved.Lock != nil {
			t.Errorf("the state of %s has lineage %q and lock %+v; want its own, and none", name, saved.Lineage, saved.Lock)
		}
	}
	if left, err := os.ReadDir(filepath.Join(work, "runs")); err != nil || len(left) != 0 {
		t.Errorf("%v is left (%v), want nothing", left, err)
	}
}

// describe makes an abandoned run that of a batch.
func describe(t *testing.T, folder string, parts []map[string]any) {
	t.Helper()
	record, err := json.Marshal(map[string]any{"id": filepath.Base(folder), "batch": map[string]any{"machines": parts}})
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{"run.json": record}
	for _, part := range parts {
		files[filepath.Join("machine-iac-parts", part["run"].(string))] = nil
	}
	for name, content := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A state that an engine could not save may be all that is known of what it names.
func TestAnUnsavedStateThatNamesWhatNobodyElseKnowsIsKept(t *testing.T) {
	stateOf := func(lineage, id string) string {
		return fmt.Sprintf(`{"version":4,"serial":9,"lineage":%q,"outputs":{},"resources":[{"mode":"managed","type":"thing","name":"this",
			"provider":"p","instances":[{"attributes":{"id":%q}}]}]}`, lineage, id)
	}
	work := shortdir.New(t)
	p := newProcess(t, "owner-1")
	session := p.lock("machine", "owner-1", "earlier")
	if err := errors.Join(session.Put(t.Context(), []byte(stateOf("l", "first"))), session.Release(t.Context(), nil)); err != nil {
		t.Fatal(err)
	}
	who := Identity{Namespace: p.namespace, Name: "machine", UID: "machine", Owner: "owner-0", Run: "dead"}
	abandon(t, work, "dead", who, stateOf("another", "second"))
	p.work = work
	p.start("owner-1")
	p.recover("machine")
	kept, err := p.store.Orphans(t.Context(), p.namespace)
	if err != nil || len(kept) != 1 || kept[0].MachineUID != "machine" || len(kept[0].Missing) != 1 || kept[0].Missing[0].ID != "second" {
		t.Fatalf("orphans %+v, %v; want one that names the second instance", kept, err)
	}
	if after, err := p.store.Get(t.Context(), state.KeyFor(p.namespace, "machine")); err != nil || string(after.Raw) != stateOf("l", "first") {
		t.Errorf("the stored state is %+v, %v; want the one before", after, err)
	}
	if left, err := p.UnsavedStates(t.Context(), p.namespace); err != nil || len(left) != 1 {
		t.Errorf("unsaved states %+v, %v; want the one", left, err)
	}
	p.DropKnown(t.Context(), "machine", []byte(stateOf("l", "second")))
	if left, err := p.store.Orphans(t.Context(), p.namespace); err != nil || len(left) != 0 {
		t.Errorf("orphans %+v, %v; want none once the Machine's state has the second instance", left, err)
	}
}

func TestALockIsTakenOverFromTheDeadAlone(t *testing.T) {
	for name, tc := range map[string]struct {
		owner      string
		idle       bool
		wantLocked bool
	}{
		"of a dead manager, by a run":               {owner: "dead"},
		"of a dead manager, by the pass":            {owner: "dead", idle: true},
		"of one whose engines may act, by a run":    {owner: "alive", wantLocked: true},
		"of one whose engines may act, by the pass": {owner: "alive", idle: true, wantLocked: true},
		"of this process, by its next run":          {owner: "owner-1"},
		"of this process, by the pass":              {owner: "owner-1", idle: true, wantLocked: true},
	} {
		p := newProcess(t, "owner-1", "dead")
		p.lock("machine", tc.owner, "earlier")
		key, err := state.KeyFor(p.namespace, "machine"), error(nil)
		if tc.idle {
			_, err = p.AcquireIdle(t.Context(), key, "orphan", state.AcquireOptions{})
		} else {
			_, err = p.Acquire(t.Context(), key, state.AcquireOptions{Lock: state.Lock{Owner: "owner-1", Run: "next"}})
		}
		_, waiting := actuators.AsRequeueAfter(err)
		_, locked := errors.AsType[*state.LockedError](err)
		if got := waiting || locked; got != tc.wantLocked || !got && err != nil {
			t.Errorf("%s: got %v, want locked: %t", name, err, tc.wantLocked)
		}
	}
}

// An epoch that the Lease does not know blocks no Machine for good, and is taken over no sooner
// than engines of it can act no more.
func TestAnEpochThatCannotBeIsTakenOver(t *testing.T) {
	forge := func(p *process, annotations map[string]string) {
		t.Helper()
		key, secret := state.KeyFor(p.namespace, "machine"), &corev1.Secret{}
		if err := plane.Client.Get(t.Context(), types.NamespacedName{Namespace: key.Namespace, Name: key.Name}, secret); err != nil {
			t.Fatal(err)
		}
		for name, value := range annotations {
			secret.Annotations[state.Prefix+name] = value
		}
		if err := plane.Client.Update(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
	}
	epoch := func(transitions, holder string) string {
		return `{"lease":"lease","transitions":` + transitions + `,"holder":"` + holder + `"}`
	}
	locked := func(owner, epoch string) string {
		return `{"owner":"` + owner + `","run":"r","since":"2026-01-01T00:00:00Z","epoch":` + epoch + `}`
	}
	for name, tc := range map[string]struct {
		annotations map[string]string
		wantWaiting bool
	}{
		"a head":                                   {map[string]string{"epoch": epoch("1000000000000000000", "dead")}, false},
		"a head, whose engines might act":          {map[string]string{"epoch": epoch("1000000000000000000", "alive")}, true},
		"a lock":                                   {map[string]string{"lock": locked("x", epoch("5", "dead"))}, false},
		"a lock, whose engines might act":          {map[string]string{"lock": locked("x", epoch("5", "alive"))}, true},
		"a head and a lock, of different epochs":   {map[string]string{"epoch": epoch("9", "dead"), "lock": locked("x", epoch("5", "dead"))}, false},
		"another's lock in this process's epoch":   {map[string]string{"lock": locked("x", epoch("1", "owner-1"))}, false},
		"another's lock in a later one of its own": {map[string]string{"lock": locked("x", epoch("7", "owner-1"))}, false},
	} {
		dead := []string{"dead", ""}
		if strings.Contains(name, "of its own") {
			dead = append(dead, "owner-1")
		}
		p := newProcess(t, "owner-1", dead...)
		if err := p.lock("machine", "owner-1", "earlier").Release(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		forge(p, tc.annotations)
		for _, acquire := range []func() (*state.Session, error){
			func() (*state.Session, error) {
				return p.Acquire(t.Context(), state.KeyFor(p.namespace, "machine"), state.AcquireOptions{Lock: state.Lock{Owner: "owner-1", Run: "next"}})
			},
			func() (*state.Session, error) {
				return p.AcquireIdle(t.Context(), state.KeyFor(p.namespace, "machine"), "orphan", state.AcquireOptions{})
			},
		} {
			session, err := acquire()
			if _, waiting := actuators.AsRequeueAfter(err); waiting != tc.wantWaiting || !waiting && err != nil {
				t.Errorf("%s: got %v, want waiting: %t", name, err, tc.wantWaiting)
			}
			if err != nil {
				continue
			}
			if err := session.Release(t.Context(), nil); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if now, err := p.store.Get(t.Context(), state.KeyFor(p.namespace, "machine")); err != nil || now.Epoch != epochOf("owner-1") {
				t.Errorf("%s: the state is of %v, %v", name, now, err)
			}
			forge(p, tc.annotations)
		}
	}
}
