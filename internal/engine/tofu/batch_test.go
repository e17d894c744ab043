package tofu

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
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
		if b.states["all"], err = batch.State(states); err != nil {
			t.Fatal(err)
		}
		w := open(t, e, RunSpec{
			ID: id, Module: m.Digest, Variables: all, Backend: b.at("all"),
			Batch: &Batch{Root: called.Root(len(given)), Folder: batch.Folder, Files: called.Files()},
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
		return batch.Clean(report, len(given)), err
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
	whole, err := batch.State(stored)
	if err != nil {
		t.Fatal(err)
	}
	delete(b.states, "all")
	if whole != nil {
		b.states["all"] = whole
	}
	return RunSpec{
		ID: "all", Identity: map[string]string{"uid": "a"}, Module: m.Digest, Variables: all, Backend: b.at("all"),
		Batch: &Batch{Parts: parts, Root: called.Root(len(given)), Folder: batch.Folder, Files: called.Files()},
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
		if part := batch.PartOf(report, n); len(part.Applied) != 3 || len(part.Diagnostics) > 0 {
			t.Errorf("Machine %d: applied %+v with %+v, want its three resources", n, part.Applied, part.Diagnostics)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	split, err := parts.Split(b.states["all"])
	if err != nil {
		t.Fatal(err)
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
		if part := batch.PartOf(report, n); len(part.Applied) != 3 {
			t.Errorf("Machine %d: %+v, want three resources destroyed", n, part.Applied)
		}
		if bytes.Contains(gone[n], []byte("terraform_data")) {
			t.Errorf("Machine %d: resources are left: %s", n, gone[n])
		}
	}
}

func TestWhatABatchCouldNotSaveIsLeftForEachMachine(t *testing.T) {
	for name, dies := range map[string]bool{"kept by this process": false, "found by the next": true} {
		t.Run(name, func(t *testing.T) {
			e, b := newEngine(t), newBackend(t)
			m := Module{Digest: "batched", Files: files(batched)}
			prepare(t, e, m)
			spec, _ := joint(t, b, m, make([][]byte, 3))
			w := open(t, e, spec)
			broken := false
			w.run.Progress = func(engine.Event) {
				if !broken {
					broken = true
					b.set(func(b *stateBackend) { b.broken = true })
				}
			}
			if _, err := w.Apply(t.Context()); failure.ClassOf(err) != failure.StateNotSaved {
				t.Fatalf("got %v, want a state that is not saved", err)
			}
			left := e.AbandonedRuns
			if dies {
				found, err := readAbandonedRuns(e.dir.runs())
				if err != nil {
					t.Fatal(err)
				}
				again, err := readAbandonedRuns(e.dir.runs())
				if err != nil || len(again) != len(found) {
					t.Errorf("another process finds %v (%v), want the same", again, err)
				}
				left = func() []AbandonedRun { return []AbandonedRun{found["a"], found["b"], found["c"]} }
			} else if err := w.Keep(); err != nil {
				t.Fatal(err)
			}
			if found := left(); len(found) != 3 {
				t.Fatalf("%+v are left, want one for each Machine", found)
			}
			for n, one := range left() {
				own := string(rune('a' + n))
				state, err := one.ErroredState()
				if err != nil || one.ID != own || string(one.Identity) != `{"uid":"`+own+`"}` || one.Module != m.Digest {
					t.Errorf("left: %+v (%v), want the run of %s", one, err, own)
				}
				if !bytes.Contains(state, []byte("secret of "+own)) || bytes.Count(state, []byte("secret of ")) != bytes.Count(state, []byte("secret of "+own)) {
					t.Errorf("the state that is left for %s is not its own alone: %s", own, state)
				}
			}
			if entries, err := os.ReadDir(e.dir.runs()); err != nil || len(entries) != 3 {
				t.Errorf("folders %v (%v), want the batch's removed", entries, err)
			}
		})
	}
}

func TestABatchThatLeavesNoStateLeavesNothing(t *testing.T) {
	e, b := newEngine(t), newBackend(t)
	m := Module{Digest: "batched", Files: files(batched)}
	prepare(t, e, m)
	spec, _ := joint(t, b, m, make([][]byte, 3))
	open(t, e, spec)
	if found, err := readAbandonedRuns(e.dir.runs()); err != nil || len(found) != 0 {
		t.Errorf("found %v (%v), want nothing of a run that has saved all", found, err)
	}
}
