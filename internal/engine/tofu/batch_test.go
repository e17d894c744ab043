package tofu

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/engine/batch"
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
