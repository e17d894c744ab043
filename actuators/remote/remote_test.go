package remote_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/machine-iac/machine-iac-operator/actuators/remote"
	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/test/moduletest"
)

// fakeEngine is a runner with one workspace, which does what the test wants.
type fakeEngine struct {
	given  remote.Given
	opened runner.RunSpec
	apply  func(context.Context, runner.RunSpec) (*engine.Report, error)
	left   []byte
	closed atomic.Bool
}

func (f *fakeEngine) Start(context.Context) error                   { return nil }
func (f *fakeEngine) AbandonedRuns() ([]runner.AbandonedRun, error) { return nil, nil }
func (f *fakeEngine) Discard(string) error                          { return nil }
func (f *fakeEngine) Starts() int64                                 { return 0 }
func (f *fakeEngine) Close(ctx context.Context) error {
	f.closed.Store(true)
	return f.given.States.Close(ctx)
}
func (f *fakeEngine) Open(_ context.Context, r runner.RunSpec) (runner.Workspace, error) {
	f.opened = r
	return &fakeWorkspace{f}, nil
}

type fakeWorkspace struct{ of *fakeEngine }

func (w *fakeWorkspace) Plan(ctx context.Context) (*engine.Report, error) { return w.Apply(ctx) }
func (w *fakeWorkspace) Planned(context.Context) (*engine.PlannedObjects, error) {
	return &engine.PlannedObjects{Changed: map[string][]string{"a.this": {"size"}}}, nil
}
func (w *fakeWorkspace) Apply(ctx context.Context) (*engine.Report, error) {
	return w.of.apply(ctx, w.of.opened)
}
func (w *fakeWorkspace) ApplyPlan(ctx context.Context) (*engine.Report, error) { return w.Apply(ctx) }
func (w *fakeWorkspace) Destroy(ctx context.Context) (*engine.Report, error)   { return w.Apply(ctx) }
func (w *fakeWorkspace) Unsaved() bool                                         { return w.of.left != nil }
func (w *fakeWorkspace) Save(context.Context) error                            { return errors.New("it has no session") }
func (w *fakeWorkspace) Keep() error                                           { return nil }
func (w *fakeWorkspace) Close() error                                          { return nil }
func (w *fakeWorkspace) ErroredState() []byte                                  { return w.of.left }

// world is a manager and the process of one run.
type world struct {
	*testing.T
	server  *remote.Server
	process *remote.Process
	ticket  remote.Ticket
	engine  *fakeEngine
	leads   atomic.Bool
	stop    context.CancelFunc
	ended   chan error
	lost    []error
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, engine: &fakeEngine{}, ended: make(chan error, 1)}
	w.leads.Store(true)
	var err error
	w.server, err = remote.NewServer(remote.ServerOptions{Listen: "127.0.0.1:0", Advertise: "127.0.0.1", Active: w.leads.Load})
	w.must(err)
	w.must(w.server.Start(t.Context()))
	t.Cleanup(func() {
		if err := w.server.Close(); err != nil {
			t.Error(err)
		}
	})
	w.process, w.ticket, err = w.server.Expect("run-1")
	w.must(err)
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// work starts the process.
func (w *world) work() {
	ctx, cancel := context.WithCancel(w.Context())
	w.stop = cancel
	go func() {
		w.ended <- remote.Work(ctx, remote.WorkOptions{Ticket: w.ticket, Patience: time.Second, Make: func(_ context.Context, given remote.Given) (runner.Runner, error) {
			w.engine.given = given
			return w.engine, nil
		}})
	}()
	w.Cleanup(cancel)
	select {
	case <-w.process.Connected():
	case <-time.After(10 * time.Second):
		w.Fatal("the process does not connect")
	}
}

func (w *world) spec() runner.RunSpec {
	return runner.RunSpec{
		ID: "run-1", Identity: map[string]string{"uid": "1"}, Module: exampleModule(w.T), Variables: []byte(`{"a": "${b}"}`),
		Environment: map[string]string{"TOKEN": "se\xffcret"}, Files: map[string]string{"KEY": "\x00binary"}, Sensitive: []string{"se\xffcret"},
		Search: engine.SearchInventory,
	}
}

func exampleModule(t *testing.T) *module.Module {
	t.Helper()
	return moduletest.Load(t)
}

func (w *world) open(run runner.RunSpec) *remote.Workspace {
	w.Helper()
	opened, err := remote.Open(w.Context(), w.process, run, remote.OpenOptions{
		Settings: []byte("settings"), Life: 600 * time.Millisecond, Patience: 500 * time.Millisecond,
		Lost:  func(cause error) error { w.lost = append(w.lost, cause); return cause },
		Keep:  func([]byte) error { return nil },
		Close: func() error { return nil },
	})
	w.must(err)
	return opened
}

func TestTheConnectionCarriesARun(t *testing.T) {
	w := newWorld(t)
	w.work()
	var mu sync.Mutex
	var heard []string
	hear := func(text string) { mu.Lock(); defer mu.Unlock(); heard = append(heard, text) }
	run := w.spec()
	run.Progress = func(event engine.Event) { hear(event.Address) }
	run.Output, run.Withheld = func(text string) { hear("out " + text) }, func(text string) { hear("withheld " + text) }
	w.engine.apply = func(_ context.Context, r runner.RunSpec) (*engine.Report, error) {
		r.Progress(engine.Event{Address: "a.this", Kind: engine.EventStarted})
		r.Output("one")
		r.Withheld("two")
		return &engine.Report{
			Changes: []engine.Change{{Address: "a.this", Action: engine.ActionCreate, Ref: engine.Ref{Name: "this"}}},
			Outputs: map[string]engine.Output{"hidden": {Sensitive: true}, "null": {Value: []byte("null")}, "text": {Value: []byte(`"x"`)}},
		}, &failure.Error{Op: failure.OpApply, Class: failure.Quota, Diagnostics: []failure.Diagnostic{{Severity: failure.SeverityError, Summary: "too many"}}}
	}
	opened := w.open(run)
	report, err := opened.Apply(t.Context())
	failed, ok := errors.AsType[*failure.Error](err)
	if !ok || failed.Class != failure.Quota || failed.Op != failure.OpApply || len(failed.Diagnostics) != 1 || failed.Err != nil {
		t.Errorf("the error is %#v", err)
	}
	if len(report.Changes) != 1 || !report.Changes[0].Instance() || report.Outputs["hidden"].Value != nil || string(report.Outputs["null"].Value) != "null" {
		t.Errorf("the report is %+v", report)
	}
	if want := []string{"a.this", "out one", "withheld two"}; !slices.Equal(heard, want) {
		t.Errorf("what was heard is %v, want %v", heard, want)
	}
	got := w.engine.opened
	if got.ID != run.ID || string(got.Variables) != string(run.Variables) || got.Environment["TOKEN"] != "se\xffcret" || got.Files["KEY"] != "\x00binary" ||
		got.Module.Digest() != run.Module.Digest() || !slices.Equal(got.Sensitive, run.Sensitive) || string(w.engine.given.Settings) != "settings" {
		t.Errorf("the run is %+v", got)
	}
	if planned, err := opened.Planned(t.Context()); err != nil || !slices.Equal(planned.Changed["a.this"], []string{"size"}) {
		t.Errorf("the plan has %+v, %v", planned, err)
	}
	w.must(opened.Close())
	if err := <-w.ended; err != nil || !w.engine.closed.Load() {
		t.Errorf("the process ended with %v, its engine is closed: %t", err, w.engine.closed.Load())
	}
}

func TestAnInterruptReachesTheEngine(t *testing.T) {
	w := newWorld(t)
	w.work()
	begun := make(chan struct{})
	w.engine.apply = func(ctx context.Context, _ runner.RunSpec) (*engine.Report, error) {
		close(begun)
		<-ctx.Done()
		return &engine.Report{}, &failure.Error{Op: failure.OpApply, Class: failure.Interrupted, Err: ctx.Err()}
	}
	opened := w.open(w.spec())
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the deadline")
	go func() { <-begun; cancel(why) }()
	if _, err := opened.Apply(ctx); failure.ClassOf(err) != failure.Interrupted || !errors.Is(err, why) {
		t.Errorf("the run ends with %v", err)
	}
	w.must(opened.Close())
}

func TestAProcessThatDoesNotEndIsGivenUp(t *testing.T) {
	w := newWorld(t)
	w.work()
	begun, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	w.engine.apply = func(context.Context, runner.RunSpec) (*engine.Report, error) {
		close(begun)
		<-release
		return &engine.Report{}, nil
	}
	opened := w.open(w.spec())
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-begun; cancel() }()
	if _, err := opened.Apply(ctx); failure.ClassOf(err) != failure.Killed || len(w.lost) != 1 {
		t.Errorf("the run ends with %v, lost: %v", err, w.lost)
	}
}

// When a process disappears, nothing is known about what its engine has done.
func TestAConnectionThatEndsIsARunThatWasKilled(t *testing.T) {
	w := newWorld(t)
	w.work()
	interrupted := make(chan struct{})
	w.engine.apply = func(ctx context.Context, _ runner.RunSpec) (*engine.Report, error) {
		w.process.Close()
		<-ctx.Done() // the engine ends when its manager is gone
		close(interrupted)
		return &engine.Report{}, nil
	}
	opened := w.open(w.spec())
	if _, err := opened.Apply(t.Context()); failure.ClassOf(err) != failure.Killed || len(w.lost) != 1 {
		t.Errorf("the run ends with %v, lost: %v", err, w.lost)
	}
	<-interrupted
	if _, err := opened.Plan(t.Context()); failure.ClassOf(err) != failure.Killed {
		t.Errorf("what is asked for next ends with %v", err)
	}
}

func TestAnEngineLivesWhileItsManagerLeads(t *testing.T) {
	w := newWorld(t)
	w.work()
	w.engine.apply = func(context.Context, runner.RunSpec) (*engine.Report, error) { return &engine.Report{}, nil }
	opened := w.open(w.spec())
	for range 10 {
		if time.Sleep(100 * time.Millisecond); !w.engine.given.Active() {
			t.Fatal("the engine is to end although its manager leads")
		}
	}
	w.leads.Store(false)
	lost := time.Now()
	for w.engine.given.Active() {
		if time.Sleep(10 * time.Millisecond); time.Since(lost) > 5*time.Second {
			t.Fatal("the engine lives on although its manager does not lead")
		}
	}
	if since := lost.Sub(w.process.Led()); since > time.Second {
		t.Errorf("the manager was last known to lead %s before", since)
	}
	w.must(opened.Close())
}

func TestAStrangerIsRefused(t *testing.T) {
	w := newWorld(t)
	other, otherTicket, err := w.server.Expect("run-2")
	w.must(err)
	defer other.Close()
	for name, change := range map[string]func(*remote.Ticket){
		"another password":         func(t *remote.Ticket) { t.Password += "x" },
		"no password":              func(t *remote.Ticket) { t.Password = "" },
		"the password of another":  func(t *remote.Ticket) { t.Password = otherTicket.Password },
		"a run that there is not":  func(t *remote.Ticket) { t.Run = "run-3" },
		"a server that is another": func(t *remote.Ticket) { t.Certificate = nil },
	} {
		ticket := w.ticket
		change(&ticket)
		ended := make(chan error, 1)
		go func() {
			ended <- remote.Work(t.Context(), remote.WorkOptions{Ticket: ticket, Patience: time.Second, Make: func(context.Context, remote.Given) (runner.Runner, error) {
				return nil, errors.New("it is let in")
			}})
		}()
		select {
		case <-w.process.Connected():
			t.Errorf("with %s, a process is let in", name)
		case err := <-ended:
			t.Logf("with %s: %v", name, err)
		case <-time.After(10 * time.Second):
			t.Errorf("with %s, the connection stays", name)
		}
	}
	if text := fmt.Sprintf("%v %+v %#v", w.ticket, w.ticket, w.ticket); strings.Contains(text, w.ticket.Password) {
		t.Errorf("a ticket prints as %s", text)
	}
}

func TestARunHasOneProcess(t *testing.T) {
	w := newWorld(t)
	w.work()
	w.engine.apply = func(context.Context, runner.RunSpec) (*engine.Report, error) { return &engine.Report{}, nil }
	opened := w.open(w.spec())
	second := remote.Work(t.Context(), remote.WorkOptions{Ticket: w.ticket, Patience: time.Second, Make: func(context.Context, remote.Given) (runner.Runner, error) {
		return nil, errors.New("it is let in")
	}})
	if second != nil {
		t.Errorf("the second process ends with %v", second)
	}
	if _, err := opened.Apply(t.Context()); err != nil {
		t.Errorf("the run of the first ends with %v", err)
	}
	if _, _, err := w.server.Expect("run-1"); err == nil {
		t.Error("a run is open twice")
	}
	w.must(opened.Close())
}
