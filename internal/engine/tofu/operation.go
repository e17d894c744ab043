package tofu

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/engine/redact"
	"github.com/machine-iac/machine-iac-operator/internal/engine/workdir"
)

// operation is one process of the CLI.
type operation struct {
	op       failure.Op
	dir      string // the engine's working folder
	redact   *redact.Redactor
	progress func(engine.Event)
	output   func(text string)
	withheld func(text string)
	// call runs the CLI and writes its -json stream to out.
	call func(ctx context.Context, out *stream) error
	// needsPlan means that a successful engine must have reported a plan.
	needsPlan bool
	// final is RunSpec.Final.
	final func(text string) bool
	// left is called if the engine left a state that it could not save, in a file or in its stream.
	// printed is the state from the stream.
	left func(printed []byte)
}

const (
	// startGrace bounds the wait for an engine's first sign of life before it is interrupted.
	startGrace = time.Second
	// killGrace is how long a killed engine has to die before everything in its folder is killed.
	killGrace = 2 * time.Second
)

// run runs the operation and reports the result. The report is never nil.
func (s *slot) run(ctx context.Context, o operation) (*engine.Report, error) {
	if ctx.Err() != nil {
		return &engine.Report{}, &failure.Error{Op: o.op, Class: failure.Interrupted, Err: context.Cause(ctx)}
	}
	clock := s.engine.options.Clock
	started := clock.Now()
	out := newStream(o.redact, o.progress)
	out.output, out.withheld = o.output, o.withheld
	s.terraform.SetStderr(out.errorWriter())
	s.engine.starts.Add(1)
	err := s.guard(ctx, o, out)
	s.terraform.SetStdout(nil)
	s.terraform.SetStderr(nil)
	report := out.finish()
	report.Started, report.Duration = started, clock.Since(started)
	err = s.conclude(ctx, o, out, report, err)
	s.engine.options.Logger.V(1).Info("Engine ended", "operation", o.op, "folder", filepath.Base(o.dir),
		"duration", report.Duration, "class", failure.ClassOf(err))
	return report, err
}

// guard runs the operation and stops it when ctx ends.
//
// The engine does not get ctx itself: terraform-exec leaves the process behind, without waiting for
// it, if its context ends while it is starting. guard interrupts the engine once it is up.
func (s *slot) guard(ctx context.Context, o operation, out *stream) error {
	inner, interrupt := context.WithCancel(context.WithoutCancel(ctx))
	defer interrupt()
	ended, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		s.watch(ctx, o, watching{begun: out.begun, ended: ended, interrupt: interrupt})
	}()
	runtime.LockOSThread() // terraform-exec makes the engine die with the thread that starts it
	err := o.call(inner, out)
	runtime.UnlockOSThread()
	close(ended)
	<-watched
	return err
}

type watching struct {
	begun, ended <-chan struct{}
	interrupt    func()
}

// watch waits for ctx to end, and then stops the engine. terraform-exec interrupts it, and kills it
// after the wait delay. Then watch kills everything whose working folder is in the run's: a
// leftover process may hold open the pipes that terraform-exec reads.
func (s *slot) watch(ctx context.Context, o operation, w watching) {
	select {
	case <-w.ended:
		return
	case <-ctx.Done():
	}
	if !waitFor(w.ended, w.begun, startGrace) {
		return
	}
	w.interrupt()
	if !waitFor(w.ended, nil, s.engine.options.WaitDelay+killGrace) {
		return
	}
	s.endProcesses(o.dir)
}

// waitFor returns false if ended is closed, and true after proceed or the limit, whichever comes
// first.
func waitFor(ended, proceed <-chan struct{}, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-ended:
		return false
	case <-proceed:
	case <-timer.C:
	}
	return true
}

func (s *slot) endProcesses(dir string) {
	count, err := workdir.KillProcesses(dir)
	if err != nil {
		s.engine.options.Logger.Error(err, "Killing the remaining processes of a killed engine")
	}
	if count > 0 {
		s.engine.options.Logger.Info("Killed remaining processes of a killed engine", "folder", filepath.Base(dir),
			"count", count)
	}
}

// conclude returns the operation's error, or nil if it succeeded.
func (s *slot) conclude(ctx context.Context, o operation, out *stream, report *engine.Report, err error) error {
	begun := closed(out.begun)
	end := outcome{
		op:          o.op,
		exit:        exitOf(err, begun),
		cancelled:   ctx.Err() != nil,
		begun:       begun,
		stateLeft:   exists(filepath.Join(o.dir, erroredFile)),
		diagnostics: report.Errors(),
		final:       o.final,
	}
	if printed := out.dumpedState(); o.left != nil && (end.stateLeft || printed != nil) {
		o.left(printed)
		end.stateLeft = true
	}
	if end.exit == exitSignal || end.exit == exitCrash || end.exit == exitNever {
		s.endProcesses(o.dir)
	}
	class := end.class()
	if class == "" && o.needsPlan && report.Planned.Operation != engine.OperationPlan {
		// a plan with changes exits with 2, and so does a Go runtime that panics
		class, end.exit = failure.Transient, exitCrash
	}
	if class == "" {
		return nil
	}
	reported := end.reported(report)
	return &failure.Error{
		Op: o.op, Class: class, Diagnostics: reported, Err: s.cause(ctx, o, end, err), Hint: failure.HintOf(reported,
			s.engine.options.Sandbox.Hint),
	}
}

// reported returns the errors to show: the engine's diagnostics, or else its plain text.
func (e outcome) reported(report *engine.Report) []failure.Diagnostic {
	if len(e.diagnostics) > 0 || report.Text == "" || e.exit == exitSuccess {
		return e.diagnostics
	}
	return []failure.Diagnostic{{Severity: failure.SeverityError, Summary: redact.Brief(report.Text),
		Withheld: report.TextWithheld}}
}

func (s *slot) cause(ctx context.Context, o operation, end outcome, err error) error {
	switch {
	case end.cancelled:
		return context.Cause(ctx)
	case end.exit == exitNever:
		return errors.New(o.redact.Redact(err.Error()))
	case end.exit == exitSignal:
		return errors.New("the engine was killed by a signal")
	case end.exit == exitCrash:
		return errors.New("the engine crashed")
	case len(end.diagnostics) == 0:
		return errors.New("the engine failed without an error message")
	default:
		return nil
	}
}

func closed(signal <-chan struct{}) bool {
	select {
	case <-signal:
		return true
	default:
		return false
	}
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}
