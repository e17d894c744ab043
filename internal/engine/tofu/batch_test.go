package tofu

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/batch"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
)

// batched is a module with all that may differ where it is called: files, an output that is null, one that is sensitive.
var batched = map[string]string{
	"main.tf": `
terraform {
  required_version = ">= 1.8.0"
}
variable "machine" { type = object({ name = string, tags = map(string) }) }
variable "size" { type = number }
variable "secret" {
  type      = string
  sensitive = true
}
resource "terraform_data" "this" {
  input = { name = var.machine.name, size = var.size, secret = var.secret, tags = var.machine.tags, read = file("${path.module}/note.txt"), beside = file("texts/note.txt") }
}
resource "terraform_data" "disk" {
  count      = 2
  input      = terraform_data.this.id
  depends_on = [terraform_data.this]
}
output "id" { value = terraform_data.this.id }
output "disks" { value = [for disk in terraform_data.disk : { id = disk.id, zone = var.size > 1 ? "a" : null }] }
output "none" { value = var.size > 100 ? "much" : null }
output "secret" {
  value     = terraform_data.this.output.secret
  sensitive = true
}
`,
	"note.txt": "beside the module", "texts/note.txt": "below it", "machine/a.txt": "a folder of that name",
}

func TestSeveralMachinesArePlannedByOneProcess(t *testing.T) {
	e, b := newEngine(t), newBackend(t)
	m := Module{Digest: "batched", Files: files(batched)}
	prepare(t, e, m)
	var given, states [][]byte
	for _, name := range []string{"a", "b", "c"} {
		one := variables(t, map[string]any{"machine": map[string]any{"name": name, "tags": map[string]string{name: "${not} a template"}}, "size": 1 + len(given), "secret": "secret of " + name})
		w := open(t, e, RunSpec{ID: name, Module: m.Digest, Variables: one, Backend: b.at(name)})
		if _, err := w.Apply(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		given, states = append(given, one), append(states, b.states[name])
	}
	called, err := batch.NewModule(m.Files)
	if err != nil {
		t.Fatal(err)
	}
	plan := func(id string) ([]bool, error) {
		t.Helper()
		all, err := called.Variables(given)
		if err != nil {
			t.Fatal(err)
		}
		if b.states["all"], err = batch.Together(3).State(states); err != nil {
			t.Fatal(err)
		}
		w := open(t, e, RunSpec{
			ID: id, Module: m.Digest, Variables: all, Backend: b.at("all"),
			Batch: &Batch{Layout: batch.Together(3), Root: called.Root(batch.Together(3)), Folder: batch.Folder, Files: called.Files()},
		})
		defer func() {
			if err := w.Close(); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(filepath.Join(e.dir.runs(), id)); !os.IsNotExist(err) {
				t.Errorf("the folder of the batch: %v, want it removed with all variables in it", err)
			}
		}()
		starts := e.Starts()
		report, err := w.Plan(t.Context(), PlanOptions{Refresh: true})
		if made := e.Starts() - starts; made > 1 {
			t.Errorf("%d processes were started, want one", made)
		}
		return batch.Together(3).Clean(report), err
	}
	for _, tc := range []struct {
		name, size string
		want       []bool
		fails      bool
	}{
		{name: "nothing has changed", size: "2", want: []bool{true, true, true}},
		{name: "one would be changed", size: "7", want: []bool{true, false, true}},
		{name: "an output appears", size: "2000", want: []bool{true, false, true}},
		{name: "one cannot be planned", size: `"two"`, want: nil, fails: true},
	} {
		given[1] = []byte(`{"machine":{"name":"b","tags":{"b":"${not} a template"}},"secret":"secret of b","size":` + tc.size + `}`)
		got, err := plan("batch")
		if (err != nil) != tc.fails {
			t.Errorf("%s: %v", tc.name, err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: which are clean (-want +got):\n%s", tc.name, diff)
		}
	}
}

// joint is a run for the Machines a, b and c, which is to change something.
func joint(t *testing.T, b *stateBackend, m Module, stored [][]byte) (RunSpec, *batch.Parts) {
	t.Helper()
	called, err := batch.NewModule(m.Files)
	if err != nil {
		t.Fatal(err)
	}
	var given [][]byte
	var machines []batch.Part
	for _, name := range []string{"a", "b", "c"} {
		given = append(given, variables(t, map[string]any{"machine": map[string]any{"name": name, "tags": map[string]string{}}, "size": 1, "secret": "secret of " + name}))
		machines = append(machines, batch.Part{Run: name, Identity: []byte(`{"uid":"` + name + `"}`), Lineage: "lineage of " + name})
	}
	all, err := called.Variables(given)
	if err != nil {
		t.Fatal(err)
	}
	parts, err := called.Parts(machines, stored)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := batch.Apart(3).State(stored)
	if err != nil {
		t.Fatal(err)
	}
	delete(b.states, "all")
	if whole != nil {
		b.states["all"] = whole
	}
	b.states["pause"] = []byte(`{"version":4,"terraform_version":"1.0.0","serial":1,"lineage":"pause","outputs":{},"resources":[]}`)
	root := called.RootToApply(batch.Apart(3), b.at("pause").Address)
	return RunSpec{
		ID: "all", Identity: map[string]string{"uid": "a"}, Module: m.Digest, Variables: all, Backend: b.at("all"),
		Batch: &Batch{Layout: batch.Apart(3), Parts: parts, Root: root, Folder: batch.Folder, Files: called.Files()},
	}, parts
}

func TestWhatOneProcessMakesIsWhatEachWouldMake(t *testing.T) {
	e, b := newEngine(t), newBackend(t)
	m := Module{Digest: "batched", Files: files(batched)}
	prepare(t, e, m)
	spec, parts := joint(t, b, m, make([][]byte, 3))
	w := open(t, e, spec)
	report, err := w.Apply(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		if part := batch.Apart(3).PartOf(report, n); len(part.Applied) != 3 || len(part.Diagnostics) > 0 {
			t.Errorf("Machine %d: applied %+v with %+v, want its three resources", n, part.Applied, part.Diagnostics)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	split, complete, err := parts.SplitComplete(b.states["all"])
	if err != nil || slices.Contains(complete, false) {
		t.Fatalf("complete %v, %v; want all three", complete, err)
	}
	for n, name := range []string{"a", "b", "c"} {
		b.states[name] = split[n]
		own := variables(t, map[string]any{"machine": map[string]any{"name": name, "tags": map[string]string{}}, "size": 1, "secret": "secret of " + name})
		alone := open(t, e, RunSpec{ID: name, Module: m.Digest, Variables: own, Backend: b.at(name)})
		report, err := alone.Plan(t.Context(), PlanOptions{Refresh: true, Lock: true, Out: true})
		if err != nil || !report.NoChange() || len(report.Drift) > 0 {
			t.Errorf("Machine %s: a plan alone finds %+v, drift %+v, outputs %+v, %v; want nothing", name, report.Changes, report.Drift, report.Outputs, err)
		}
		var state struct {
			Lineage string                     `json:"lineage"`
			Outputs map[string]json.RawMessage `json:"outputs"`
		}
		if err := json.Unmarshal(split[n], &state); err != nil || state.Lineage != "lineage of "+name {
			t.Errorf("Machine %s: lineage %q (%v)", name, state.Lineage, err)
		}
		if len(state.Outputs) != 3 || !bytes.Contains(state.Outputs["secret"], []byte(`"sensitive":true`)) || bytes.Contains(state.Outputs["id"], []byte(`"sensitive"`)) {
			t.Errorf("Machine %s: outputs %s, want three, of which one is sensitive", name, state.Outputs)
		}
		if err := alone.Close(); err != nil {
			t.Fatal(err)
		}
	}
	spec, parts = joint(t, b, m, split)
	w = open(t, e, spec)
	if report, err = w.Destroy(t.Context()); err != nil {
		t.Fatal(err)
	}
	gone, err := parts.Split(b.states["all"])
	if err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		if part := batch.Apart(3).PartOf(report, n); len(part.Applied) != 3 {
			t.Errorf("Machine %d: %+v, want three resources destroyed", n, part.Applied)
		}
		if bytes.Contains(gone[n], []byte("terraform_data")) {
			t.Errorf("Machine %d: resources are left: %s", n, gone[n])
		}
	}
}

// unsavedBatch has a batch make its Machines, and save nothing of it.
func unsavedBatch(t *testing.T, mods ...func(*Options)) (*Engine, *Workspace) {
	t.Helper()
	e, b := newEngine(t, mods...), newBackend(t)
	m := Module{Digest: "batched", Files: files(batched)}
	prepare(t, e, m)
	spec, _ := joint(t, b, m, make([][]byte, 3))
	w := open(t, e, spec)
	w.run.Progress = func(engine.Event) { b.set(func(b *stateBackend) { b.broken = true }) }
	if _, err := w.Apply(t.Context()); failure.ClassOf(err) != failure.StateNotSaved {
		t.Fatalf("got %v, want a state that is not saved", err)
	}
	return e, w
}

func TestWhatABatchCouldNotSaveIsLeftForEachMachine(t *testing.T) {
	for name, tc := range map[string]struct{ dies, full bool }{
		"kept by this process":                    {},
		"found by the next":                       {dies: true},
		"kept by this process, on a full disk":    {full: true},
		"found by the next, where disks are full": {dies: true, full: true},
	} {
		t.Run(name, func(t *testing.T) {
			var mods []func(*Options)
			fill := func(int64) {}
			if tc.full {
				dir, fillDisk := smallDisk(t, "16m")
				fill, mods = fillDisk, append(mods, func(o *Options) { o.WorkDir = dir })
			}
			e, w := unsavedBatch(t, mods...)
			fill(0)
			if tc.dies {
				e.abandoned = nextRuns(t, e)
			} else if err := w.Keep(); err != nil {
				t.Fatal(err)
			}
			for n, left := range []string{"abc", "bc", "c"} {
				found := e.AbandonedRuns()
				if len(found) != len(left) {
					t.Fatalf("%+v are left, want one for each of %s", found, left)
				}
				for i, one := range found {
					wantPart(t, one, left[i:i+1])
				}
				if err := e.Discard(left[:1]); err != nil {
					t.Fatal(err)
				}
				if again := nextRuns(t, e); len(again) != 2-n {
					t.Errorf("another process finds %v, want what was not discarded of %s", again, left)
				}
			}
			if entries, err := os.ReadDir(e.dir.runs()); err != nil || len(entries) != 0 {
				t.Errorf("folders %v (%v), want none", entries, err)
			}
		})
	}
}

// nextRuns returns the runs that another process would find.
func nextRuns(t *testing.T, e *Engine) map[string]AbandonedRun {
	t.Helper()
	found, err := readAbandonedRuns(e.dir.runs(), e.options.Logger)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// wantPart checks that a run is that of a Machine, and has its resources alone.
func wantPart(t *testing.T, one AbandonedRun, own string) {
	t.Helper()
	state, err := one.ErroredState()
	if err != nil || one.ID != own || string(one.Identity) != `{"uid":"`+own+`"}` || one.Module != "batched" {
		t.Errorf("left: %+v (%v), want the run of %s", one, err, own)
	}
	if !bytes.Contains(state, []byte("secret of "+own)) || bytes.Count(state, []byte("secret of ")) != bytes.Count(state, []byte("secret of "+own)) {
		t.Errorf("the state that is left for %s is not its own alone: %s", own, state)
	}
}

// TestABatchThatCannotBeSplitIsNobodys damages the state of a batch before the next process finds it.
func TestABatchThatCannotBeSplitIsNobodys(t *testing.T) {
	e, w := unsavedBatch(t)
	whole := bytes.TrimSpace(w.ErroredState())
	for name, left := range map[string][]byte{
		"empty": {}, "cut off at once": whole[:1], "cut off in the middle": whole[:len(whole)/2], "cut off before its end": whole[:len(whole)-1],
		"a Machine's": []byte(stateWith("l", 9, thing("", "1"))), "of more Machines": []byte(stateWith("l", 9, partOf(3, "1"))),
	} {
		dir := filepath.Join(t.TempDir(), "runs")
		if err := os.CopyFS(filepath.Join(dir, "all"), os.DirFS(w.dir)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "all", erroredFile), left, 0o600); err != nil {
			t.Fatal(err)
		}
		if found, err := readAbandonedRuns(dir, e.options.Logger); err != nil || len(found) != 0 {
			t.Errorf("%s: %v are left (%v), want nothing", name, found, err)
		}
		if exists(filepath.Join(dir, "all")) {
			t.Errorf("%s: the folder is there still", name)
		}
	}
}

func TestABatchThatLeavesNoStateLeavesNothing(t *testing.T) {
	e, b := newEngine(t), newBackend(t)
	m := Module{Digest: "batched", Files: files(batched)}
	prepare(t, e, m)
	spec, _ := joint(t, b, m, make([][]byte, 3))
	open(t, e, spec)
	if found, err := readAbandonedRuns(e.dir.runs(), e.options.Logger); err != nil || len(found) != 0 {
		t.Errorf("found %v (%v), want nothing of a run that has saved all", found, err)
	}
}
