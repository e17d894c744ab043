package pulumi

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
)

func openIdle(t *testing.T, e *Engine, mods ...func(*RunSpec)) *Workspace {
	t.Helper()
	workspace, err := e.Open(t.Context(), idleRun(t, mods...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = workspace.Close() })
	return workspace
}

// successor returns the engine that follows on one that died: what its process held is free, and its runs were not closed.
func successor(t *testing.T, dead *Engine) *Engine {
	t.Helper()
	if err := dead.lock.Close(); err != nil {
		t.Fatal(err)
	}
	options := dead.options
	options.WorkDir = dead.dir
	next, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func named(id string) func(*RunSpec) { return func(r *RunSpec) { r.ID = id } }

func TestASecondEngineInAFolderIsRefused(t *testing.T) {
	e := newIdle(t, "exit 0")
	options := e.options
	options.WorkDir = e.dir
	if _, err := New(options); err == nil || !strings.Contains(err.Error(), "another running engine") {
		t.Errorf("New() = %v, want an error: both would end each other's processes", err)
	}
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	next, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	if err := next.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestOpenWaitsForASlot(t *testing.T) {
	e := newIdle(t, "exit 0", func(o *Options) { o.Slots = 1 })
	first := openIdle(t, e)
	stopping := errors.New("the manager stops")
	ctx, cancel := context.WithCancelCause(t.Context())
	opened := make(chan error)
	go func() {
		_, err := e.Open(ctx, idleRun(t, named("r2")))
		opened <- err
	}()
	select {
	case err := <-opened:
		t.Fatalf("a second run is opened beside the first, %v", err)
	case <-time.After(20 * time.Millisecond): // no proof, but a chance to fail
	}
	cancel(stopping)
	if err := <-opened; failure.ClassOf(err) != failure.Interrupted || !errors.Is(err, stopping) {
		t.Errorf("Open() = %v, want an interrupt and its cause", err)
	}
	go func() {
		_, err := e.Open(t.Context(), idleRun(t, named("r3")))
		opened <- err
	}()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-opened; err != nil {
		t.Errorf("Open() = %v, want the slot that was given back", err)
	}
}

func TestARunThatCannotBeGivesItsSlotBack(t *testing.T) {
	e := newIdle(t, "exit 0", func(o *Options) { o.Slots = 1 })
	for _, mod := range []func(*RunSpec){
		func(r *RunSpec) { r.Variables = []byte(`[]`) }, // found when the folder is filled
		func(r *RunSpec) { r.Search = engine.SearchLookup },
	} {
		if _, err := e.Open(t.Context(), idleRun(t, mod)); err == nil {
			t.Fatal("it is opened, want an error")
		}
	}
	if err := os.Mkdir(filepath.Join(e.runs(), "taken"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Open(t.Context(), idleRun(t, named("taken"))); err == nil || !strings.Contains(err.Error(), "not discarded") {
		t.Fatalf("Open() = %v, want that the folder is there", err)
	}
	openIdle(t, e)
}

func TestCloseWaitsForRuns(t *testing.T) {
	e := newIdle(t, "exit 0")
	workspace := openIdle(t, e)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := e.Close(ctx); err == nil || !strings.Contains(err.Error(), "1 of its runs are still open") {
		t.Errorf("Close() = %v, want that it waits", err)
	}
	if _, err := e.Open(t.Context(), idleRun(t, named("r2"))); failure.ClassOf(err) != failure.Interrupted {
		t.Errorf("Open() = %v, want that a closing engine opens nothing", err)
	}
	if err := workspace.Close(); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(t.Context()); err != nil {
		t.Errorf("Close() = %v, want none once the run is closed", err)
	}
}

const clouds = "clouds:\n  openstack:\n    auth:\n      password: hunter22\n"

func TestARunHasItsFilesAndLeavesNone(t *testing.T) {
	e := newIdle(t, `printf %s "$CLOUDS" > "$HOME/../../../path"; cat "$CLOUDS" > "$HOME/../../../content"; exit 1`)
	workspace := openIdle(t, e, func(r *RunSpec) { r.Files = map[string]string{"CLOUDS": clouds} })
	if _, err := workspace.Destroy(t.Context()); err == nil {
		t.Fatal("the script fails, and Destroy does not")
	}
	read := func(name string) string {
		content, err := os.ReadFile(filepath.Join(e.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	path := read("path")
	if read("content") != clouds || filepath.Dir(filepath.Dir(path)) != workspace.dir {
		t.Errorf("the CLI reads %q in %s, want what the run was given, in the run's folder", read("content"), path)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v, %v, want 0600", info.Mode(), err)
	}
	if err := workspace.Close(); err != nil {
		t.Fatal(err)
	}
	if exists(path) {
		t.Error("the file is left")
	}
}

// left lists the files in a folder.
func left(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			name, _ := filepath.Rel(dir, path)
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

var keptFiles = []string{
	"backend/.pulumi/meta.yaml", "backend/.pulumi/stacks/acme/machine.json", "run.json",
}

func TestAFolderThatIsKeptHasTheCheckpointAlone(t *testing.T) {
	e := newIdle(t, `echo plan > ../plan.json; exit 1`, func(o *Options) { o.Slots = 1 })
	workspace := openIdle(t, e, func(r *RunSpec) { r.Files = map[string]string{"CLOUDS": clouds} })
	if _, err := workspace.Destroy(t.Context()); err == nil || !exists(workspace.path(planFile)) {
		t.Fatalf("Destroy() = %v, want a failure that leaves a plan", err)
	}
	if err := os.WriteFile(workspace.stateFile(), lookup, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(workspace.Keep(), workspace.Close()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(keptFiles, left(t, workspace.dir)); diff != "" {
		t.Errorf("what is left differs (-want +got):\n%s", diff)
	}
	if found, err := e.AbandonedRuns(); err != nil || len(found) != 1 || !cmp.Equal(found[0].Checkpoint, lookup) {
		t.Errorf("left over are %v, %v, want the run that was kept", found, err)
	}
	openIdle(t, e, named("r2")) // the slot is free again
	found, err := successor(t, e).AbandonedRuns()
	if err != nil || len(found) != 2 || !cmp.Equal(found[0].Checkpoint, lookup) {
		t.Errorf("left over are %v, %v, want the checkpoint of the first run", found, err)
	}
}

func TestLeftovers(t *testing.T) {
	e := newIdle(t, "exit 1")
	write := func(workspace *Workspace, checkpoint []byte) {
		if err := os.WriteFile(workspace.stateFile(), checkpoint, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	written := openIdle(t, e, named("written"), func(r *RunSpec) { r.Files = map[string]string{"CLOUDS": clouds} })
	write(written, lookup)
	openIdle(t, e, named("unchanged"), func(r *RunSpec) { r.Checkpoint = lookup })
	openIdle(t, e, named("untouched"))
	if err := os.Mkdir(filepath.Join(e.runs(), "begun"), 0o700); err != nil {
		t.Fatal(err)
	}
	looked := openIdle(t, e, named("looked"), func(r *RunSpec) {
		r.Program = os.DirFS("testdata/node")
		r.Search = engine.SearchLookup
	})
	write(looked, lookup)
	next := successor(t, e)
	got, err := next.AbandonedRuns()
	if err != nil {
		t.Fatal(err)
	}
	identity := json.RawMessage(`{"uid":"u1"}`)
	want := []AbandonedRun{
		{ID: "begun"}, {ID: "looked", Identity: identity}, {ID: "unchanged", Identity: identity}, {ID: "untouched", Identity: identity},
		{ID: "written", Identity: identity, Checkpoint: lookup},
	}
	for i := range got {
		if got[i].Started.IsZero() != (got[i].Identity == nil) {
			t.Errorf("%s was started %s", got[i].ID, got[i].Started)
		}
		got[i].Started = time.Time{}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("left over differs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(keptFiles, left(t, written.dir)); diff != "" {
		t.Errorf("what is left differs (-want +got):\n%s", diff)
	}
	own := openIdle(t, next, named("own"))
	if again, err := next.AbandonedRuns(); err != nil || len(again) != len(want) {
		t.Errorf("left over are %v, %v, want the same while a run is open", again, err)
	}
	for _, id := range []string{"own", "..", "begun", "looked", "unchanged", "untouched", "written"} {
		if err := next.Discard(id); err != nil {
			t.Fatal(err)
		}
	}
	if again, err := next.AbandonedRuns(); err != nil || len(again) != 0 {
		t.Errorf("left over are %v, %v, want none", again, err)
	}
	if !exists(own.stateFile()) {
		t.Error("a run that is open was discarded")
	}
	if _, err := os.Stat(written.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a run that was discarded is there, %v", err)
	}
}
