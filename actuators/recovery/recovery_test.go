package recovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/actuators/reporting"
	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/actuators/terraform"
	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/engine/tofu"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/internal/state/backend"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
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
	p := &process{t: t, namespace: namespace, store: state.New(plane.Client, state.Options{}), work: t.TempDir()}
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
	session, err := p.store.Acquire(p.t.Context(), state.KeyFor(p.namespace, uid), state.AcquireOptions{
		Lock: state.Lock{Owner: owner, Run: run, Operation: string(runs.Create), Epoch: epochOf(owner)},
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return session
}

func TestAStateThatCouldNotBeSavedIsSavedAtTheNextStart(t *testing.T) {
	work, unsaved := t.TempDir(), `{"version":4,"serial":3,"lineage":"l","outputs":{},"resources":[]}`
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
		t.Errorf("the state of the Machine that is there: %+v, %v; want serial 3, unlocked", saved, err)
	}
	if _, err := p.store.Get(t.Context(), state.KeyFor(p.namespace, "gone")); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("the state of the Machine that is gone: %v, want none", err)
	}
}

// A state that an engine could not save may be all that is known of what it names.
func TestAnUnsavedStateThatNamesWhatNobodyElseKnowsIsKept(t *testing.T) {
	stateOf := func(lineage, id string) string {
		return fmt.Sprintf(`{"version":4,"serial":9,"lineage":%q,"outputs":{},"resources":[{"mode":"managed","type":"thing","name":"this",
			"provider":"p","instances":[{"attributes":{"id":%q}}]}]}`, lineage, id)
	}
	work := t.TempDir()
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
		p := newProcess(t, "owner-1", "dead") // in no test of its own, whose name would make the path of the work folder too long
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
