package pulumi

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/engine/workdir"
	"github.com/machine-iac/machine-iac-operator/test/long"
	"github.com/machine-iac/machine-iac-operator/test/observe"
)

// warm returns the bridges and providers that are kept running.
func (b *bench) warm() []int {
	b.t.Helper()
	found, err := workdir.Processes(b.kept())
	if err != nil {
		b.t.Fatal(err)
	}
	return found
}

func TestABridgeServesRunAfterRun(t *testing.T) {
	b := newBench(t, "warm")
	b.create()
	b.wantPlan("unchanged", small, engine.ActionNoOp) // has a bridge for what it reads, and one for what it plans
	first := b.warm()
	if len(first) == 0 {
		t.Fatal("no bridge is kept running after a run")
	}
	b.destroy()
	if diff := cmp.Diff(first, b.warm()); diff != "" {
		t.Errorf("other processes are kept running after more runs (-first +now):\n%s", diff)
	}
}

func TestARunWhoseHostIsKilled(t *testing.T) {
	long.Test(t)
	b := newBench(t, "killed")
	workspace := b.open(b.run("killed", small))
	kill := func() {
		all, err := observe.Processes()
		if err != nil {
			t.Error(err)
		}
		for _, process := range all {
			if process.Host() && process.Within([]string{workspace.dir}, nil) {
				_ = syscall.Kill(process.PID, syscall.SIGKILL) // the test looks at what comes of it
			}
		}
	}
	b.after.Store(&kill)
	report, err := workspace.Apply(t.Context())
	b.after.Store(nil)
	if class := failure.ClassOf(err); class != failure.Killed {
		t.Fatalf("a run whose host was killed ends with %v (%s)\n%s", err, class, report.Text)
	}
	if report, err := workspace.Plan(t.Context()); err != nil {
		t.Errorf("the run can do nothing more: %v\n%s", err, report.Text)
	}
}

func TestAProgramReadsItsOwnFilesAlone(t *testing.T) {
	b := newBench(t, "reads")
	if b.options.Sandbox.ABI() == 0 {
		t.Skip("the kernel confines nobody to files")
	}
	for _, file := range []string{filepath.Join(t.TempDir(), "secret"), filepath.Join(b.runs(), "other", "program", "secret")} {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("hunter2"), 0o600); err != nil {
			t.Fatal(err)
		}
		r := b.run("reads", small)
		r.Program = fstest.MapFS{"Pulumi.yaml": {Data: []byte("name: node\nruntime: yaml\noutputs: {x: {fn::readFile: " + file + "}}\n")}}
		workspace := b.open(r)
		values, report, err := workspace.Preview(t.Context())
		if said := report.Text + strings.Join(b.printed, "\n"); err == nil || !strings.Contains(said, "permission denied") {
			t.Errorf("a program that reads %s gets %v, %v\n%s\nwant that it may not", file, values.Outputs, err, said)
		}
		if err := workspace.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
