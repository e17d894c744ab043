package stacks_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/pulumi"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/test/shortdir"
)

// tool returns the path of what `make tools` has built.
func tool(t *testing.T, parts ...string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(append([]string{"..", "bin"}, parts...)...))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// theKey is shared: making one takes its time.
var theKey = sync.OnceValues(func() (*pulumi.Key, error) { return pulumi.NewKey(context.Background()) })

// thePulumi is found once: it is asked for its version.
var thePulumi = sync.OnceValues(func() (pulumi.Binary, error) {
	return pulumi.Find(context.Background(), filepath.Join("..", "bin", "pulumi"))
})

// newPulumi returns an engine with the real CLI, and providers from a folder of bin/. The mods change its options.
func newPulumi(t *testing.T, mirror string, mods ...func(*pulumi.Options)) *pulumi.Engine {
	t.Helper()
	binary, err := thePulumi()
	if err != nil {
		t.Fatalf("%v; run 'make tools'", err)
	}
	options := pulumi.Options{
		Binary: binary, WorkDir: shortdir.New(t), Plugins: tool(t, "pulumi-plugins"), ProviderMirror: tool(t, mirror),
		WaitDelay: 20 * time.Second, Logger: testr.New(t),
	}
	for _, mod := range mods {
		mod(&options)
	}
	made, err := pulumi.New(options)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// history is a stack between its runs: what is known of it.
type history struct {
	t       *testing.T
	engine  *pulumi.Engine
	project string
	program fs.FS

	mu         sync.Mutex
	checkpoint []byte
}

// newHistory returns that of a stack that was never run.
func newHistory(t *testing.T, e *pulumi.Engine, of *module.Module) history {
	return history{t: t, engine: e, project: of.Name(), program: of.Files()}
}

// withLocals adds the locals of a stack to the variables of a run.
func withLocals(t *testing.T, of *module.Module, variables []byte) []byte {
	t.Helper()
	locals, err := of.Locals(variables)
	if err != nil {
		t.Fatal(err)
	}
	if locals == nil {
		return variables
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(variables, &all); err != nil {
		t.Fatal(err)
	}
	all[module.ConfigLocals] = locals
	raw, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// given are what a run is given besides: the configuration, and what the providers read.
type given struct {
	variables   []byte
	environment map[string]string
	files       map[string]string
	sensitive   []string
}

func (h *history) run(id string, with given) pulumi.RunSpec {
	h.t.Helper()
	key, err := theKey()
	if err != nil {
		h.t.Fatal(err)
	}
	return pulumi.RunSpec{
		ID: id, Project: h.project, Program: h.program, Key: key, Secret: []string{"user_data"}, Variables: with.variables,
		Environment: with.environment, Files: with.files, Sensitive: with.sensitive, Checkpoint: h.last(),
		Save: func(_ context.Context, checkpoint []byte) error {
			h.set(bytes.Clone(checkpoint))
			return nil
		},
	}
}

func (h *history) last() []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.checkpoint
}

func (h *history) set(checkpoint []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.checkpoint = checkpoint
}

// with opens a run, uses it and closes it.
func (h *history) with(id string, with given, use func(*pulumi.Workspace) (*engine.Report, error)) (*engine.Report, error) {
	h.t.Helper()
	folder, err := h.engine.Open(h.t.Context(), h.run(id, with))
	if err != nil {
		h.t.Fatal(err)
	}
	report, failed := use(folder)
	if err := folder.Close(); err != nil {
		h.t.Fatal(err)
	}
	return report, failed
}

// must is with for what has to go well.
func (h *history) must(id string, with given, use func(*pulumi.Workspace) (*engine.Report, error)) *engine.Report {
	h.t.Helper()
	report, err := h.with(id, with, use)
	if err != nil {
		h.t.Fatalf("%s: %v\n%s", id, err, report.Text)
	}
	return report
}

func (h *history) create(with given) *engine.Report {
	h.t.Helper()
	return h.must("create", with, func(f *pulumi.Workspace) (*engine.Report, error) { return f.Apply(h.t.Context()) })
}

func (h *history) plan(id string, with given) *engine.Report {
	h.t.Helper()
	return h.must(id, with, func(f *pulumi.Workspace) (*engine.Report, error) { return f.Plan(h.t.Context()) })
}

// update plans, wants a plan that changes in place, and carries it out.
func (h *history) update(id string, with given) {
	h.t.Helper()
	h.must(id, with, func(f *pulumi.Workspace) (*engine.Report, error) {
		report, err := f.Plan(h.t.Context())
		if err != nil || !report.InPlaceOnly() {
			h.t.Fatalf("%s: the plan is %+v, %v, want a change in place", id, report.Changes, err)
		}
		return f.ApplyPlan(h.t.Context())
	})
}

func (h *history) destroy(with given) {
	h.t.Helper()
	h.must("destroy", with, func(f *pulumi.Workspace) (*engine.Report, error) { return f.Destroy(h.t.Context()) })
}

// empty returns the checkpoint of a stack that was never run.
func (h *history) empty(with given) []byte {
	h.t.Helper()
	h.set(nil)
	folder, err := h.engine.Open(h.t.Context(), h.run("empty", with))
	if err != nil {
		h.t.Fatal(err)
	}
	defer folder.Close()
	checkpoint, err := folder.Checkpoint()
	if err != nil {
		h.t.Fatal(err)
	}
	return checkpoint
}

// recorded is what these tests read of a checkpoint.
type recorded struct {
	Checkpoint struct {
		Latest struct {
			Resources []struct {
				Type    string
				Outputs map[string]any
			}
		}
	}
}

// outputs returns the stack's outputs; none where there are none.
func (h *history) outputs() map[string]any {
	h.t.Helper()
	var read recorded
	if err := json.Unmarshal(h.last(), &read); err != nil {
		h.t.Fatal(err)
	}
	for _, resource := range read.Checkpoint.Latest.Resources {
		if resource.Type == "pulumi:pulumi:Stack" {
			return resource.Outputs
		}
	}
	return nil
}
