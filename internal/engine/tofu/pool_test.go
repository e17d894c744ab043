package tofu

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/hashicorp/terraform-exec/tfexec"

	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
)

// fakeProvider is a provider whose life a test reads.
type fakeProvider struct {
	mu    sync.Mutex
	name  string
	gone  bool
	ended bool
}

func (f *fakeProvider) reattach() tfexec.ReattachConfig {
	return tfexec.ReattachConfig{Protocol: f.name}
}

func (f *fakeProvider) exited() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.gone
}

func (f *fakeProvider) end() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gone, f.ended = true, true
	return nil
}

func (f *fakeProvider) wasEnded() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ended
}

// fakePool starts fakes, which it lists in order.
func fakePool(t *testing.T, o WarmOptions) (*pool, *[]*fakeProvider) {
	p := newPool(t.TempDir(), o, nil, logr.Discard())
	started := &[]*fakeProvider{}
	p.start = func(_, file string, _ map[string]string) (warm, error) {
		if file == "broken" {
			return nil, errors.New("it does not start")
		}
		f := &fakeProvider{name: fmt.Sprintf("%s-%d", file, len(*started)+1)}
		*started = append(*started, f)
		return f, nil
	}
	return p, started
}

// lent returns the names of the providers that a pool lends for files.
func lent(p *pool, environment map[string]string, files ...string) (*lease, string) {
	wanted := map[string]string{}
	for _, file := range files {
		wanted[file] = file
	}
	l := p.lend(wanted, environment)
	var names []string
	for _, file := range files {
		if config, found := l.reattach()[file]; found {
			names = append(names, config.Protocol)
		}
	}
	return l, strings.Join(names, " ")
}

func TestPoolLendsAgainWhatCameBackWell(t *testing.T) {
	p, _ := fakePool(t, WarmOptions{Max: 4})
	first, name := lent(p, nil, "a", "b")
	if name != "a-1 b-2" && name != "a-2 b-1" {
		t.Fatalf("lent %q", name)
	}
	first.giveBack()
	first.giveBack() // nothing is given back twice
	if _, again := lent(p, nil, "a", "b"); again != name {
		t.Errorf("lent %q, want %q again", again, name)
	}
	if p.running != 2 {
		t.Errorf("%d run, want 2", p.running)
	}
}

func TestPoolLendsToOneRunAtATime(t *testing.T) {
	p, _ := fakePool(t, WarmOptions{Max: 4})
	_, one := lent(p, nil, "a")
	if _, two := lent(p, nil, "a"); one == two {
		t.Errorf("both runs have %s", one)
	}
}

func TestPoolNeverMixesCredentials(t *testing.T) {
	p, _ := fakePool(t, WarmOptions{Max: 4})
	l, one := lent(p, map[string]string{"TOKEN": "a"}, "a")
	l.giveBack()
	if _, two := lent(p, map[string]string{"TOKEN": "b"}, "a"); one == two {
		t.Errorf("%s serves two credentials", one)
	}
}

func TestPoolEndsWhatFailed(t *testing.T) {
	p, started := fakePool(t, WarmOptions{Max: 1})
	l, _ := lent(p, nil, "a")
	if err := l.discard(); err != nil {
		t.Fatal(err)
	}
	l.giveBack()
	if !(*started)[0].wasEnded() {
		t.Error("the provider of a run that failed goes on")
	}
	if _, name := lent(p, nil, "a"); name != "a-2" {
		t.Errorf("lent %q, want a new one", name)
	}
}

func TestPoolIsBounded(t *testing.T) {
	p, started := fakePool(t, WarmOptions{Max: 2})
	one, _ := lent(p, nil, "a")
	two, _ := lent(p, nil, "b")
	if _, name := lent(p, nil, "c"); name != "" {
		t.Errorf("lent %q although two are lent", name)
	}
	one.giveBack()
	two.giveBack()
	if _, name := lent(p, nil, "c"); name != "c-3" {
		t.Errorf("lent %q, want a new one", name)
	}
	p.ending.Wait()
	if !(*started)[0].wasEnded() || (*started)[1].wasEnded() {
		t.Error("not the one that was idle longest had to go")
	}
}

func TestPoolReplacesAfterSomeUses(t *testing.T) {
	p, started := fakePool(t, WarmOptions{Max: 1, Uses: 3})
	for range 3 {
		l, name := lent(p, nil, "a")
		if name != "a-1" {
			t.Errorf("lent %q, want a-1", name)
		}
		l.giveBack()
	}
	p.ending.Wait()
	if _, name := lent(p, nil, "a"); name != "a-2" || !(*started)[0].wasEnded() {
		t.Errorf("lent %q, want a new one", name)
	}
}

func TestPoolEndsWhatIsIdleForLong(t *testing.T) {
	p, started := fakePool(t, WarmOptions{Max: 1, IdleTTL: time.Millisecond})
	l, _ := lent(p, nil, "a")
	l.giveBack()
	eventually(t, "the idle provider is ended", (*started)[0].wasEnded)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running != 0 || len(p.idle) != 0 {
		t.Errorf("%d run and %d are idle, want none", p.running, len(p.idle))
	}
}

func TestPoolDoesNotLendTheDead(t *testing.T) {
	p, started := fakePool(t, WarmOptions{Max: 1})
	l, _ := lent(p, nil, "a")
	l.giveBack()
	_ = (*started)[0].end()
	if _, name := lent(p, nil, "a"); name != "a-2" {
		t.Errorf("lent %q, want a new one", name)
	}
}

func TestPoolGoesOnWithoutWhatDoesNotStart(t *testing.T) {
	p, _ := fakePool(t, WarmOptions{Max: 1})
	if _, name := lent(p, nil, "broken"); name != "" {
		t.Errorf("lent %q", name)
	}
	if _, name := lent(p, nil, "a"); name != "a-1" {
		t.Errorf("lent %q: the one that did not start takes room", name)
	}
}

func TestPoolCloses(t *testing.T) {
	p, started := fakePool(t, WarmOptions{Max: 2})
	l, _ := lent(p, nil, "a")
	m, _ := lent(p, nil, "b")
	m.giveBack()
	p.close()
	if !(*started)[1].wasEnded() {
		t.Error("an idle provider outlives the pool")
	}
	l.giveBack()
	p.close()
	if !(*started)[0].wasEnded() {
		t.Error("a provider that is given back to a closed pool goes on")
	}
	if _, name := lent(p, nil, "a"); name != "" {
		t.Errorf("a closed pool lends %q", name)
	}
}

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
		if len(f.lease.providers) != 1 {
			t.Fatalf("the run has %d warm providers, want 1", len(f.lease.providers))
		}
		for _, config := range f.lease.reattach() {
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
