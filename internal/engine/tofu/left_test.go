package tofu

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/batch"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/test/shortdir"
)

// stateWith is a state of a lineage, with resources in it.
func stateWith(lineage string, serial int, resources ...string) string {
	return fmt.Sprintf(`{"version":4,"terraform_version":"1.12.6","serial":%d,"lineage":%q,"outputs":{},"resources":[%s]}`, serial, lineage, strings.Join(resources, ","))
}

func thing(module, id string) string {
	return fmt.Sprintf(`{"module":%q,"mode":"managed","type":"thing","name":"this","provider":"p","instances":[{"attributes":{"id":%q}}]}`, module, id)
}

func partOf(n int, id string) string { return thing(fmt.Sprintf("module.call%d[\"m%d\"]", n, n), id) }

// TestOnlyAStateIsLeft has an engine leave truncated, foreign and old states, and print its own or not.
func TestOnlyAStateIsLeft(t *testing.T) {
	whole, newer, older := stateWith("l", 7), stateWith("l", 8), stateWith("l", 6)
	parts := &batch.Parts{Machines: []batch.Part{{Run: "a", Lineage: "of a"}, {Run: "b", Lineage: "of b"}}}
	both, foreign := stateWith("batch", 7, partOf(0, "1"), partOf(1, "2")), stateWith("another", 9, partOf(0, "3"))
	nothing := ""
	for name, tc := range map[string]struct {
		parts         *batch.Parts
		file, printed string // "-" for no file
		want          string
	}{
		"a whole file":                                                  {file: whole, printed: nothing, want: whole},
		"a file that is empty":                                          {file: "", printed: nothing},
		"a file that is cut off":                                        {file: whole[:len(whole)/2], printed: nothing},
		"one that lacks its last byte":                                  {file: whole[:len(whole)-1], printed: nothing},
		"a file that is empty, and what is printed":                     {file: "", printed: whole, want: whole},
		"a file that is cut off, and what is printed":                   {file: whole[:40], printed: whole, want: whole},
		"a file that is no state, and what is printed":                  {file: `{"version":4}`, printed: whole, want: whole},
		"a file from before, and what is printed":                       {file: older, printed: whole, want: whole},
		"a file of another lineage, and what is printed":                {file: stateWith("k", 9), printed: whole, want: whole},
		"a file that is newer than what is printed":                     {file: newer, printed: whole, want: newer},
		"a file, and something else that is printed":                    {file: whole, printed: `{"version":4}`, want: whole},
		"no file, and something else that is printed":                   {file: "-", printed: `{"version":4}`},
		"a state of an engine that could not read whether there is one": {file: stateWith("", 0), printed: nothing, want: `{"lineage":"r","outputs":{},"resources":[],"serial":0,"terraform_version":"1.12.6","version":4}`},
		"neither, and only the engine's word that it failed":            {file: "-", printed: nothing},
		"a batch's state":                                               {parts: parts, file: both, printed: nothing, want: both},
		"a batch's state that is cut off":                               {parts: parts, file: both[:100], printed: nothing},
		"one with a resource of no Machine":                             {parts: parts, file: stateWith("batch", 7, partOf(0, "1"), partOf(2, "3")), printed: nothing},
		"one with a resource of no Machine, and a whole one":            {parts: parts, file: stateWith("batch", 9, thing("", "1")), printed: both, want: both},
		"one of another lineage than the batch's":                       {parts: &batch.Parts{Lineage: "batch", Machines: parts.Machines}, file: foreign, printed: nothing},
		"one of another lineage than the batch's, and its own":          {parts: &batch.Parts{Lineage: "batch", Machines: parts.Machines}, file: foreign, printed: both, want: both},
	} {
		t.Run(name, func(t *testing.T) {
			script := `echo '{"@level":"info","@message":"up","type":"version"}'` + "\n"
			if tc.file != "-" {
				script += "cat >" + erroredFile + " <<'END'\n" + tc.file + "\nEND\n"
				if tc.file == "" {
					script += ": >" + erroredFile + "\n"
				}
			}
			if tc.printed != "" {
				script += "cat <<'END'\n" + `{"@level":"info","@message":"Emergency state dump","type":"log","state":` + tc.printed + "}\nEND\n"
			}
			script += `echo '{"@level":"error","type":"diagnostic","diagnostic":{"severity":"error","summary":"Failed to persist state to backend"}}'
exit 1`
			e := newEngine(t, func(o *Options) { o.Binary = scripted(t, script) })
			prepare(t, e, moduleOf("m", ""))
			spec := RunSpec{ID: "r", Module: "m", Backend: Backend{Address: "http://127.0.0.1:1"}}
			if tc.parts != nil {
				spec.Batch = &Batch{Parts: tc.parts, Folder: batch.Folder}
			}
			f := open(t, e, spec)
			if _, err := f.Apply(t.Context()); failure.ClassOf(err) != failure.StateNotSaved {
				t.Errorf("the apply fails with %v (%s), want that the state was not saved", err, failure.ClassOf(err))
			}
			if got := string(bytes.TrimSpace(f.ErroredState())); got != tc.want {
				t.Errorf("left is %q, want %q", got, tc.want)
			}
		})
	}
}

func TestAnInterruptedEngineThatSavesNothingHasNotSaved(t *testing.T) {
	const script = `trap 'echo "{\"@level\":\"error\",\"type\":\"diagnostic\",\"diagnostic\":{\"severity\":\"error\",\"summary\":\"Failed to save state\"}}"; exit 1' INT
echo '{"@level":"info","@message":"up","type":"version"}'
echo '{"@level":"info","type":"apply_start","hook":{"resource":{"addr":"x_vm.this"},"action":"create"}}'
while true; do sleep 0.1; done`
	e := newEngine(t, func(o *Options) { o.Binary = scripted(t, script) })
	prepare(t, e, moduleOf("m", ""))
	_, _, err := interruptAt(t, e, RunSpec{ID: "r", Module: "m", Backend: Backend{Address: "http://127.0.0.1:1"}}, "x_vm.this")
	if failure.ClassOf(err) != failure.StateNotSaved {
		t.Errorf("the apply fails with %v (%s), want that the state was not saved", err, failure.ClassOf(err))
	}
}

// smallDisk returns a folder on its own file system, and a function that fills it up to the given room.
func smallDisk(t *testing.T, size string) (dir string, fill func(room int64)) {
	t.Helper()
	dir = shortdir.New(t)
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size+",mode=0700"); err != nil {
		t.Skipf("a file system of its own needs root: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir, func(room int64) {
		var there syscall.Statfs_t
		if err := syscall.Statfs(dir, &there); err != nil {
			t.Error(err)
			return
		}
		filler, err := os.Create(filepath.Join(dir, "filler"))
		if err != nil {
			t.Error(err)
			return
		}
		defer filler.Close()
		if err := syscall.Fallocate(int(filler.Fd()), 0, 0, int64(there.Bavail)*there.Bsize-room); err != nil {
			t.Error(err)
		}
	}
}

// large is a module whose state has more than the disk has room for.
const large = `
variable "text" { type = string }
resource "terraform_data" "this" { input = var.text }
resource "terraform_data" "after" { input = terraform_data.this.id }
`

func TestANearlyFullDiskCutsTheStateOff(t *testing.T) {
	dir, fill := smallDisk(t, "16m")
	e, b := newEngine(t, func(o *Options) { o.WorkDir = dir }), newBackend(t)
	prepare(t, e, moduleOf("large", large))
	text := strings.Repeat("x", 300<<10)
	begun := false
	f := open(t, e, RunSpec{
		ID: "r", Identity: map[string]string{"uid": "u"}, Module: "large", Backend: b.at("m"), Variables: variables(t, map[string]any{"text": text}),
		Progress: func(engine.Event) {
			if !begun {
				begun = true
				b.set(func(b *stateBackend) { b.broken = true })
				fill(400 << 10)
			}
		},
	})
	_, err := f.Apply(context.WithoutCancel(t.Context()))
	if failure.ClassOf(err) != failure.StateNotSaved {
		t.Fatalf("the apply fails with %v (%s), want that the state was not saved", err, failure.ClassOf(err))
	}
	if written, err := os.Stat(filepath.Join(f.dir, erroredFile)); err == nil && written.Size() > 400<<10 {
		t.Fatalf("the engine has written %d bytes; the test shows nothing", written.Size())
	}
	state := f.ErroredState()
	if resources, _ := readState(t, state); len(resources) != 2 {
		t.Errorf("the state that is left has %v, want both resources, as the engine has printed them", resources)
	}
	// The variables, which go, make room for the state.
	if err := f.Keep(); err != nil {
		t.Fatal(err)
	}
	left := e.AbandonedRuns()
	if len(left) != 1 {
		t.Fatalf("%+v are left, want the run", left)
	}
	if kept, err := left[0].ErroredState(); err != nil || !bytes.Equal(kept, state) {
		t.Errorf("what is kept has %d bytes (%v), want the %d of the state", len(kept), err, len(state))
	}
}
