package remote

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
)

// idleAfterStop is how long a stopping process waits between operations for its manager to close
// the run.
const idleAfterStop = 10 * time.Second

// Given is the input for creating an engine in a run's process.
type Given struct {
	// Settings come from OpenOptions.
	Settings []byte
	// Life is how long an engine may live after Active was last true.
	Life time.Duration
	// Active reports whether the manager is known to lead. It does not block.
	Active func() bool
	// States serve the run's state only.
	States *States
}

// WorkOptions configures a run's process. All fields but Logger and Clock are required.
type WorkOptions struct {
	Ticket Ticket
	// Make creates the runner. Its workspaces are [StateKeeper]s. Work closes it.
	Make func(ctx context.Context, given Given) (runner.Runner, error)
	// Patience is how long an engine may take to exit when interrupted because the manager is gone.
	Patience time.Duration
	Logger   logr.Logger
	Clock    clock.WithTicker
}

// StateKeeper is a workspace that can return its unsaved state.
type StateKeeper interface{ ErroredState() []byte }

// worker is the process of a run.
type worker struct {
	options WorkOptions
	link    *link
	// inbox receives the manager's requests; gone is closed when the connection has ended.
	inbox chan asked
	gone  chan struct{}

	// runner and workspace are set once the run is open.
	runner    runner.Runner
	workspace runner.Workspace

	mu        sync.Mutex
	interrupt context.CancelFunc
	beats     map[int64]time.Time
	led       time.Time
	life      time.Duration
}

// asked is an operation requested by the manager. Its context ends on an interrupt, which may come
// before it begins.
type asked struct {
	message
	ctx context.Context
}

// Work executes one run on the manager's requests. It returns when the manager has closed the run
// or is gone. When ctx ends, the engine is interrupted.
func Work(ctx context.Context, o WorkOptions) (err error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	conn, err := o.Ticket.dial(ctx, o.Clock, false)
	if err != nil {
		return fmt.Errorf("reaching the manager of the run: %w", err)
	}
	w := &worker{options: o, link: conn, inbox: make(chan asked, 1), gone: make(chan struct{}),
		beats: map[int64]time.Time{}}
	defer func() { _ = conn.Close() }()
	go w.receive(ctx)
	defer func() { err = errors.Join(err, w.close(context.WithoutCancel(ctx))) }()
	return w.serve(ctx)
}

// receive reads the manager's messages until the connection ends.
func (w *worker) receive(ctx context.Context) {
	defer close(w.gone)
	for {
		var m message
		if err := w.link.receive(&m, maxFrame); err != nil {
			w.options.Logger.V(1).Info("The manager closed the connection", "why", err.Error())
			w.stop()
			return
		}
		switch m.Kind {
		case kindLeads:
			w.mu.Lock()
			if asked, known := w.beats[m.Beat]; known {
				w.led = asked
			}
			maps.DeleteFunc(w.beats, func(number int64, _ time.Time) bool { return number <= m.Beat })
			w.mu.Unlock()
		case kindInterrupt:
			w.stop()
		default:
			own, cancel := context.WithCancel(ctx)
			w.mu.Lock()
			w.interrupt = cancel
			w.mu.Unlock()
			select {
			case w.inbox <- asked{message: m, ctx: own}:
			default: // only one may be requested at a time
				w.options.Logger.Info("Closing the connection: the manager requested more than one operation at a time")
				cancel()
				return
			}
		}
	}
}

// stop interrupts the current operation.
func (w *worker) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.interrupt != nil {
		w.interrupt()
	}
}

// active reports whether the manager is known to lead, or was when last asked in time.
func (w *worker) active() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.led.IsZero() && w.options.Clock.Since(w.led) < w.life
}

// beat regularly asks the manager whether it leads.
func (w *worker) beat(every time.Duration) {
	ticker := w.options.Clock.NewTicker(every)
	defer ticker.Stop()
	for number := int64(1); ; number++ {
		w.mu.Lock()
		w.beats[number] = w.options.Clock.Now()
		w.mu.Unlock()
		if err := w.link.send(message{Kind: kindBeat, Beat: number}); err != nil {
			_ = w.link.Close()
			return
		}
		select {
		case <-ticker.C():
		case <-w.gone:
			return
		}
	}
}

// serve executes the requested operations one by one.
func (w *worker) serve(ctx context.Context) error {
	stopped, idle := ctx.Done(), (<-chan time.Time)(nil)
	for {
		select {
		case m := <-w.inbox:
			if err := w.link.send(message{Kind: kindResult, Result: w.operate(m)}); err != nil {
				return fmt.Errorf("reporting the outcome of operation %q: %w", m.Kind, err)
			}
			if m.Open != nil && m.Open.Check {
				return nil
			}
		case <-w.gone:
			return nil
		case <-stopped:
			stopped, idle = nil, w.options.Clock.After(idleAfterStop)
		case <-idle:
			return fmt.Errorf("the run was stopped: %w", context.Cause(ctx))
		}
	}
}

// operate executes an operation. It is interrupted when this process stops, the manager requests
// it, or the connection ends.
func (w *worker) operate(m asked) *result {
	defer w.stop()
	done := &result{}
	var err error
	if m.Kind == kindOpen {
		done.Gone, err = w.open(m.ctx, m.Open)
	} else {
		err = w.run(m.ctx, m.Kind, done)
	}
	done.Failed = packError(err)
	if keeper, able := w.workspace.(StateKeeper); able {
		done.Unsaved = keeper.ErroredState()
	}
	return done
}

func (w *worker) run(ctx context.Context, what kind, done *result) (err error) {
	if w.workspace == nil {
		return errors.New("the run is not open")
	}
	switch what {
	case kindPlan:
		done.Report, err = w.workspace.Plan(ctx)
	case kindPlanned:
		done.Planned, err = w.workspace.Planned(ctx)
	case kindApply:
		done.Report, err = w.workspace.Apply(ctx)
	case kindApplyPlan:
		done.Report, err = w.workspace.ApplyPlan(ctx)
	case kindDestroy:
		done.Report, err = w.workspace.Destroy(ctx)
	default:
		return fmt.Errorf("unknown operation %q; the versions of the manager and this process differ", what)
	}
	return err
}

// open creates the engine and opens the run, or checks its instance.
func (w *worker) open(ctx context.Context, o *opening) (gone bool, err error) {
	if o == nil || w.runner != nil || o.Beat <= 0 || o.Life <= 0 {
		return false, errors.New("invalid request to open the run; the versions of the manager and this process differ")
	}
	w.mu.Lock()
	w.life = o.Life / 2
	w.mu.Unlock()
	go w.beat(o.Beat)
	if err := w.untilLed(ctx, o.Beat); err != nil {
		return false, &failure.Error{Op: failure.OpOpen, Class: failure.Interrupted, Err: err}
	}
	spec, err := w.specOf(o)
	if err != nil {
		return false, &failure.Error{Op: failure.OpOpen, Class: failure.Unknown, Err: err}
	}
	states, err := newStates(ctx, w.options, o)
	if err != nil {
		return false, &failure.Error{Op: failure.OpOpen, Class: failure.Transient, Err: err}
	}
	with, err := w.options.Make(ctx, Given{Settings: o.Settings, Life: o.Life / 2, Active: w.active, States: states})
	if err != nil {
		return false, errors.Join(&failure.Error{Op: failure.OpOpen, Class: failure.Unknown, Err: err}, states.Close(ctx))
	}
	w.runner = with
	if err := with.Start(ctx); err != nil {
		return false, err
	}
	if o.Check {
		checker, able := with.(runner.InstanceChecker)
		if !able {
			return false, errors.New("the engine does not support looks")
		}
		return checker.CheckInstance(ctx, spec, nil)
	}
	w.workspace, err = with.Open(ctx, spec)
	return false, err
}

// untilLed blocks until the manager is known to lead.
func (w *worker) untilLed(ctx context.Context, every time.Duration) error {
	for !w.active() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-w.options.Clock.After(min(every, 50*time.Millisecond)): // a round trip
		}
	}
	return nil
}

// specOf converts the run for the engine.
func (w *worker) specOf(o *opening) (runner.RunSpec, error) {
	restored, err := load.RestoreProven(o.Module)
	if err != nil {
		return runner.RunSpec{}, fmt.Errorf("reading the run's module: %w", err)
	}
	if restored.Digest() != o.Digest {
		return runner.RunSpec{}, fmt.Errorf("the run's module has digest %s, want %s", restored.Digest(), o.Digest)
	}
	spec := runner.RunSpec{
		ID: o.ID, Identity: o.Identity, Module: restored, Lineage: o.Lineage, Variables: o.Variables,
		Environment: toTexts(o.Environment),
		Credentials: o.Credentials, InitEnvironment: toTexts(o.InitEnvironment), Files: toTexts(o.Files), Search: o.Search,
		NotFound: o.NotFound,
		Destroys: o.Destroys,
		Progress: func(event engine.Event) { w.report(message{Kind: kindProgress, Event: &event}) },
		Output:   func(text string) { w.report(message{Kind: kindOutput, Text: []byte(text)}) },
		Withheld: func(text string) { w.report(message{Kind: kindWithheld, Text: []byte(text)}) },
	}
	for _, one := range o.Sensitive {
		spec.Sensitive = append(spec.Sensitive, string(one))
	}
	return spec, nil
}

// report sends a report during an operation. A failure means that the connection has ended, which
// interrupts the run.
func (w *worker) report(m message) {
	if err := w.link.send(m); err != nil {
		_ = w.link.Close()
	}
}

// close releases the run's resources. The supervisor takes care of an engine that does not exit.
func (w *worker) close(ctx context.Context) error {
	if w.runner == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, w.options.Patience)
	defer cancel()
	var err error
	if w.workspace != nil {
		err = w.workspace.Close()
	}
	return errors.Join(err, w.runner.Close(ctx))
}
