package pulumi

import (
	"fmt"
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
)

// hosts returns the hosts of programs that are kept running.
func (b *bench) hosts() []int {
	b.t.Helper()
	found, err := workdir.Processes(b.kept(hosts))
	if err != nil {
		b.t.Fatal(err)
	}
	return found
}

func TestAHostRunsProgramAfterProgram(t *testing.T) {
	b := newBench(t, "hosted")
	b.create()
	first := b.hosts()
	if len(first) != 1 {
		t.Fatalf("the hosts %v are kept running after a run, want one", first)
	}
	b.wantPlan("unchanged", small, engine.ActionNoOp)
	b.with("destroy", small, func(f *Workspace) (*engine.Report, error) { return f.Destroy(t.Context()) })
	if diff := cmp.Diff(first, b.hosts()); diff != "" {
		t.Errorf("other hosts are kept running after more runs (-first +now):\n%s", diff)
	}
	left, err := filepath.Glob(filepath.Join(b.kept(hosts), "*", "program"))
	if err != nil || len(left) > 0 {
		t.Errorf("programs of runs that are over are left: %v, %v", left, err)
	}
}

func TestARunWhoseHostIsKilled(t *testing.T) {
	long.Test(t)
	b := newBench(t, "killed")
	b.create()
	first := b.hosts()
	kill := func() {
		for _, pid := range b.hosts() {
			_ = syscall.Kill(pid, syscall.SIGKILL) // the test looks at what comes of it
		}
	}
	kill() // while no run has it: the next has another
	b.with("destroy", small, func(f *Workspace) (*engine.Report, error) { return f.Destroy(t.Context()) })
	second := b.hosts()
	if len(second) != 1 || second[0] == first[0] {
		t.Fatalf("the hosts %v are kept running, want another than %v", second, first)
	}
	b.after.Store(&kill)
	workspace := b.open(b.run("killed", small))
	report, err := workspace.Apply(t.Context())
	b.after.Store(nil)
	if class := failure.ClassOf(err); class != failure.Killed {
		t.Fatalf("a run whose host was killed ends with %v (%s)\n%s", err, class, report.Text)
	}
	if report, err := workspace.Plan(t.Context()); err != nil {
		t.Errorf("the run can do nothing more: %v\n%s", err, report.Text)
	}
	if err := workspace.Close(); err != nil {
		t.Error(err)
	}
	b.with("next", small, func(f *Workspace) (*engine.Report, error) { return f.Plan(t.Context()) })
	if third := b.hosts(); len(third) != 1 || third[0] == second[0] {
		t.Errorf("the hosts %v are kept running, want another than %v", third, second)
	}
}

// withProgram returns a run of a program that makes nothing, with one more file.
func (b *bench) withProgram(id, program string) RunSpec {
	r := b.run(id, small)
	r.Checkpoint = nil
	r.Program = fstest.MapFS{"Pulumi.yaml": {Data: []byte("name: node\nruntime: yaml\n" + program)}, "greeting": {Data: []byte("hello")}}
	return r
}

// preview returns all that is said of a program.
func (b *bench) preview(program string) string {
	b.t.Helper()
	b.printed = nil
	workspace := b.open(b.withProgram("run", program))
	values, report, err := workspace.Preview(b.t.Context())
	said := []string{"class: " + string(failure.ClassOf(err))}
	for _, one := range report.Diagnostics {
		said = append(said, one.Format())
	}
	for _, text := range b.printed {
		_, text, _ = strings.Cut(text, "Z ") // the time
		said = append(said, text)
	}
	said = append(said, fmt.Sprint(values.Outputs))
	if err := workspace.Close(); err != nil {
		b.t.Fatal(err)
	}
	return strings.Join(said, "\n")
}

// TestAProgramSeesTheSameWhereItsHostIsKept compares what programs compute, and what is said of those that are wrong, with what a CLI says that has
// started their host itself.
func TestAProgramSeesTheSameWhereItsHostIsKept(t *testing.T) {
	long.Test(t)
	kept, own := newBench(t, "same"), newBench(t, "same", func(o *Options) { o.Warm.Max = 0 })
	for name, tc := range map[string]struct{ program, want string }{
		"files": {
			"outputs:\n  relative: {fn::readFile: ./greeting}\n  whole: {fn::readFile: \"${pulumi.cwd}/greeting\"}\n", "relative:hello whole:hello",
		},
		"an asset":                 {"outputs:\n  asset: {fn::fileAsset: ./greeting}\n", "path:./greeting"},
		"an asset by a whole path": {"outputs:\n  asset: {fn::fileAsset: \"${pulumi.cwd}/greeting\"}\n", "path:/"},
		"names":                    {"outputs: {project: \"${pulumi.project}\", stack: \"${pulumi.stack}\"}\n", "project:node stack:machine"},
		"an unknown variable":      {"outputs: {x: \"${missing}\"}\n", "Pulumi.yaml line 3"},
		"a reserved prefix":        {"outputs: {x: {fn::nothing: 1}}\n", "Warning: 'fn::' is a reserved prefix"},
		"a file that is not there": {"outputs: {x: {fn::readFile: ./missing}}\n", "no such file"},
		"its path is left out":     {"outputs: {x: {fn::readFile: \"${pulumi.cwd}/missing\"}}\n", "open missing: no such file"},
		"an unknown package":       {"resources:\n  this: {type: \"nothing:index:Thing\"}\n", "pulumi-resource-nothing"},
		"an unknown field":         {"resource: {}\noutputs: {x: 1}\n", "x:1"},
		"no YAML":                  {"outputs: [\n", "invalid YAML"},
		"no mapping":               {"outputs: 7\n", "outputs must be an object"},
	} {
		t.Run(name, func(t *testing.T) {
			want := own.preview(tc.program)
			if !strings.Contains(want, tc.want) {
				t.Fatalf("said is\n%s\nwant %q in it", want, tc.want)
			}
			got := kept.preview(tc.program)
			if folders, err := filepath.Glob(filepath.Join(kept.kept(hosts), "*")); err == nil {
				for _, host := range folders { // a whole path names the folder, of which each run has another
					got = strings.ReplaceAll(got, host, filepath.Join(own.dir, "runs", "run"))
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("with a host that is kept running it differs (-own +kept):\n%s", diff)
			}
		})
	}
	kept.preview("outputs: {x: 1}\n") // what fails leaves no host
	if len(kept.hosts()) == 0 {
		t.Error("no host is kept running, so that nothing was compared")
	}
	if found := own.hosts(); len(found) > 0 {
		t.Errorf("the hosts %v are kept running", found)
	}
}

func TestAProgramWhoseHostIsKeptReadsItsOwn(t *testing.T) {
	b := newBench(t, "reads")
	if b.options.Sandbox.ABI() == 0 {
		t.Skip("the kernel confines nobody to files")
	}
	for _, file := range []string{
		filepath.Join(t.TempDir(), "elsewhere"), filepath.Join(b.runs(), "other", "program", "secret"), filepath.Join(b.kept(hosts), "other", "program", "secret"),
	} {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("hunter2"), 0o600); err != nil {
			t.Fatal(err)
		}
		if said := b.preview("outputs: {x: {fn::readFile: " + file + "}}\n"); !strings.Contains(said, "permission denied") || strings.Contains(said, "hunter2") {
			t.Errorf("a program that reads %s gets\n%s\nwant that it may not", file, said)
		}
	}
}
