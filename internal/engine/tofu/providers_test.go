package tofu

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
)

func TestWarmProviderServesRunAfterRun(t *testing.T) {
	e := newEngine(t, func(o *Options) {
		o.ProviderMirror = mirrorForTests(t)
		o.Warm.Max = 2
	})
	backend := newBackend(t)
	t.Setenv("POISON", "parent")
	prepare(t, e, objectModule(objectLock+"}\n"))
	var pid int
	for i := range 3 {
		f := open(t, e, RunSpec{ID: fmt.Sprint("r-", i), Module: "object", Backend: backend.at("m"), Variables: []byte(`{"name":"x"}`),
			Environment: map[string]string{"TOKEN": "t-1"}})
		if report := plan(t, f, PlanOptions{Out: true}); report.Planned.Add != 1 {
			t.Errorf("plan is %+v, want one create", report.Planned)
		}
		if len(f.lease.Reattach()) != 1 {
			t.Fatalf("the run has %d warm providers, want 1", len(f.lease.Reattach()))
		}
		for _, config := range f.lease.Reattach() {
			if i > 0 && config.Pid != pid {
				t.Errorf("run %d has provider process %d, want %d again", i, config.Pid, pid)
			}
			pid = config.Pid
		}
		closeNow(t, f)
	}
	expectOnlyOwnEnvironment(t, pid)

	// a run that fails takes its provider with it
	f := open(t, e, RunSpec{ID: "failing", Module: "object", Backend: backend.at("m"), Variables: []byte(`{"name":"x"}`),
		Environment: map[string]string{"TOKEN": "t-1"}})
	if _, err := f.Apply(t.Context()); failure.ClassOf(err) != failure.Transient {
		t.Errorf("error is %v (%s), want a refused connection", err, failure.ClassOf(err))
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the provider of a run that failed goes on: %v", err)
	}
	// what follows in the run has a provider of the engine's own
	if report := plan(t, f, PlanOptions{}); report.Planned.Add != 1 {
		t.Errorf("plan is %+v, want one create", report.Planned)
	}
	closeNow(t, f)
	if err := e.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(e.dir.providers(), "*")); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

// TestEnginesBesideWarmProvidersCollectLess has engines collect garbage more rarely where no provider inherits that.
func TestEnginesBesideWarmProvidersCollectLess(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Options)
		own    map[string]string
		want   string
	}{
		"warm providers":                    {func(*Options) {}, nil, "300"},
		"providers of the engine's own":     {func(o *Options) { o.Warm.Max = 0 }, nil, ""},
		"a value of the administrator":      {func(o *Options) { o.Environment = map[string]string{"GOGC": "50"} }, nil, "50"},
		"a value among a run's environment": {func(*Options) {}, map[string]string{"GOGC": "60"}, "60"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, func(o *Options) {
				o.ProviderMirror, o.Warm.Max = mirrorForTests(t), 1
				tc.change(o)
			})
			prepare(t, e, objectModule(objectLock+"}\n"))
			f := open(t, e, RunSpec{ID: "r", Module: "object", Backend: newBackend(t).at("m"), Variables: []byte(`{"name":"x"}`), Environment: tc.own})
			if got := f.environmentBeside(f.providers(t.Context()))["GOGC"]; got != tc.want {
				t.Errorf("GOGC is %q, want %q", got, tc.want)
			}
		})
	}
}

func expectOnlyOwnEnvironment(t *testing.T, pid int) {
	t.Helper()
	environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(environment), "TOKEN=t-1\x00") {
		t.Error("the provider does not see the run's environment")
	}
	for _, forbidden := range []string{"POISON=", "PATH=", "TF_HTTP_"} {
		if strings.Contains(string(environment), forbidden) {
			t.Errorf("the provider sees %s", forbidden)
		}
	}
}

// BenchmarkPlan reports the CPU time of a plan, with that of everything that it starts.
func BenchmarkPlan(b *testing.B) {
	for name, maximum := range map[string]int{"forked": 0, "warm": 1} {
		b.Run(name, func(b *testing.B) {
			e := newEngine(b, func(o *Options) {
				o.ProviderMirror = mirrorForTests(b)
				o.Warm.Max = maximum
			})
			backend := newBackend(b)
			prepare(b, e, objectModule(objectLock+"}\n"))
			before := childrenCPU(b)
			for i := range b.N {
				f, err := e.Open(b.Context(), RunSpec{ID: fmt.Sprint("r-", i), Module: "object", Backend: backend.at("m"), Variables: []byte(`{"name":"x"}`)})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := f.Plan(b.Context(), PlanOptions{}); err != nil {
					b.Fatal(err)
				}
				if err := f.Close(); err != nil {
					b.Fatal(err)
				}
			}
			if err := e.Close(b.Context()); err != nil { // a warm provider's time counts when it is gone
				b.Fatal(err)
			}
			b.ReportMetric((childrenCPU(b)-before).Seconds()/float64(b.N), "cpu-s/op")
		})
	}
}

func childrenCPU(b testing.TB) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
