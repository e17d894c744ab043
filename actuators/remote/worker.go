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

// idleAfterStop is how long a process that was asked to end waits for its manager to close the run, which may be between two operations.
const idleAfterStop = 10 * time.Second

// Given is what an engine is made with in the process of a run.
type Given struct {
	// Settings are those of OpenOptions.
	Settings []byte
	// Life is for how long an engine may live after Active was last true.
	Life time.Duration
	// Active reports whether the manager is known to lead. It does not wait.
	Active func() bool
	// States serve the run's state, and that alone.
	States *States
}

// WorkOptions are what a run's process works with. All must be set but the Logger and the Clock.
type WorkOptions struct {
	Ticket Ticket
	// Make makes what carries the run out. Its workspaces are [StateKeeper]s. It is closed by Work.
	Make func(ctx context.Context, given Given) (runner.Runner, error)
	// Patience is how long the engine may take to end when it is interrupted because the manager is gone.
	Patience time.Duration
	Logger   logr.Logger
	Clock    clock.WithTicker
}

// StateKeeper is a workspace that can return the state that it could not save.
type StateKeeper interface{ ErroredState() ([]byte, error) }

// worker is the process of a run.
type worker struct {
	options WorkOptions
	link    *link
	// inbox has what the manager asks for, gone is closed when its connection has ended.
	inbox chan asked
	gone  chan struct{}

	// runner and workspace are there once the run is open.
	runner    runner.Runner
	workspace runner.Workspace

	mu        sync.Mutex
	interrupt context.CancelFunc
	beats     map[int64]time.Time
	led       time.Time
	life      time.Duration
}

// asked is an operation that the manager asks for. Its context ends when it is to be interrupted, which may be before it begins.
type asked struct {
	message
	ctx context.Context
}

// Work carries one run out, as its manager asks for it, and returns when that has closed the run or is gone. When ctx ends, the engine is interrupted.
func Work(ctx context.Context, o WorkOptions) (err error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	conn, err := o.Ticket.dial(ctx, o.Clock, false)
	if err != nil {
		return fmt.Errorf("reaching the manager of the run: %w", err)
	}
	w := &worker{options: o, link: conn, inbox: make(chan asked, 1), gone: make(chan struct{}), beats: map[int64]time.Time{}}
	defer func() { _ = conn.Close() }()
	go w.receive(ctx)
	defer func() { err = errors.Join(err, w.close(context.WithoutCancel(ctx))) }()
	return w.serve(ctx)
}

// receive reads what the manager sends until the connection ends.
func (w *worker) receive(ctx context.Context) {
	defer close(w.gone)
	for {
		var m message
		if err := w.link.receive(&m, maxFrame); err != nil {
			w.options.Logger.V(1).Info("The manager has ended the connection", "why", err.Error())
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
			default: // one is asked for at a time
				w.options.Logger.Info("The manager asks for more than one operation at a time; the connection is ended")
				cancel()
				return
			}
		}
	}
}

// stop interrupts the operation that goes on.
func (w *worker) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.interrupt != nil {
		w.interrupt()
	}
}

// active reports whether the manager is known to lead, or was when it was last asked in time.
func (w *worker) active() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.led.IsZero() && w.options.Clock.Since(w.led) < w.life
}

// beat asks the manager again and again whether it leads.
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

// serve carries out one operation after the other.
func (w *worker) serve(ctx context.Context) error {
	stopped, idle := ctx.Done(), (<-chan time.Time)(nil)
	for {
		select {
		case m := <-w.inbox:
			if err := w.link.send(message{Kind: kindResult, Result: w.operate(m)}); err != nil {
				return fmt.Errorf("reporting how the operation %q ended: %w", m.Kind, err)
			}
			if m.Open != nil && m.Open.Check != nil {
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

// operate carries one operation out. It is interrupted when this process is to end, the manager says so, or the connection ends.
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
		unsaved, err := keeper.ErroredState()
		done.Unsaved = unsaved
		if err != nil && done.Failed == nil {
			done.Failed = packError(err)
		}
	}
	return done
}

func (w *worker) run(ctx context.Context, what kind, done *result) (err error) {
	if w.workspace == nil {
		return errors.New("the run is not open")
	}
	var said *engine.Report
	switch what {
	case kindPlan:
		said, err = w.workspace.Plan(ctx)
	case kindPlanned:
		done.Planned, err = w.workspace.Planned(ctx)
	case kindApply:
		said, err = w.workspace.Apply(ctx)
	case kindApplyPlan:
		said, err = w.workspace.ApplyPlan(ctx)
	case kindDestroy:
		said, err = w.workspace.Destroy(ctx)
	default:
		return fmt.Errorf("there is no operation %q; the manager is of another version than this process", what)
	}
	done.Report = packReport(said)
	return err
}

// open makes the engine and opens the run, or looks at its instance.
func (w *worker) open(ctx context.Context, o *opening) (gone bool, err error) {
	if o == nil || w.runner != nil || o.Beat <= 0 || o.Life <= 0 {
		return false, errors.New("the run cannot be opened so; the manager is of another version than this process")
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
	if o.Check != nil {
		checker, able := with.(runner.InstanceChecker)
		if !able {
			return false, errors.New("the engine cannot look at instances")
		}
		return checker.CheckInstance(ctx, spec, o.Check, nil)
	}
	w.workspace, err = with.Open(ctx, spec)
	return false, err
}

// untilLed waits until the manager is known to lead.
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

// specOf returns the run as the engine takes it.
func (w *worker) specOf(o *opening) (runner.RunSpec, error) {
	restored, err := load.RestoreProven(o.Module)
	if err != nil {
		return runner.RunSpec{}, fmt.Errorf("reading the run's module: %w", err)
	}
	if restored.Digest() != o.Digest {
		return runner.RunSpec{}, fmt.Errorf("the run's module has the digest %s, and %s is to be run", restored.Digest(), o.Digest)
	}
	spec := runner.RunSpec{
		ID: o.ID, Identity: o.Identity, Module: restored, Lineage: o.Lineage, Variables: o.Variables, Environment: toTexts(o.Environment),
		Credentials: o.Credentials, InitEnvironment: toTexts(o.InitEnvironment), Files: toTexts(o.Files), Search: o.Search, NotFound: o.NotFound,
		Progress: func(event engine.Event) { w.report(message{Kind: kindProgress, Event: &event}) },
		Output:   func(text string) { w.report(message{Kind: kindOutput, Text: []byte(text)}) },
		Withheld: func(text string) { w.report(message{Kind: kindWithheld, Text: []byte(text)}) },
	}
	for _, one := range o.Sensitive {
		spec.Sensitive = append(spec.Sensitive, string(one))
	}
	return spec, nil
}

// report sends what the run reports while it goes on. Where that fails the connection has ended, which interrupts the run.
func (w *worker) report(m message) {
	if err := w.link.send(m); err != nil {
		_ = w.link.Close()
	}
}

// close gives back what the run has. Of an engine that does not end, the supervisor takes care.
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
