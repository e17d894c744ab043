package tofu

import (
	"context"
	"errors"
	"os/exec"
	"syscall"

	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
)

// exit is how an engine's process ended.
type exit string

const (
	exitSuccess exit = "success" // exit code 0, or 2 from a plan
	exitFailure exit = "failure" // exit code 1: it failed and reported why
	exitCrash   exit = "crash"   // another exit code
	exitSignal  exit = "signal"  // by a signal
	exitNever   exit = "never"   // it did not start
)

// exitOf derives the exit from terraform-exec's error. Never use that error's text: it repeats the
// engine's output, including secrets. Getting it may panic if the engine succeeded despite an
// interrupt.
func exitOf(err error, begun bool) exit {
	var process *exec.ExitError
	switch {
	case err == nil:
		return exitSuccess
	case errors.As(err, &process):
		if status, ok := process.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return exitSignal
		}
		if process.ExitCode() == 1 {
			return exitFailure
		}
		return exitCrash
	case begun && errors.Is(err, context.Canceled):
		return exitSuccess
	default:
		return exitNever
	}
}

// outcome is how an engine ended.
type outcome struct {
	op   failure.Op
	exit exit
	// cancelled: the caller's context ended first, and the engine was interrupted.
	cancelled bool
	// begun: the engine has written some output. Without any, it failed while starting.
	begun bool
	// stateLeft: it left a state that it could not save, which may be truncated.
	stateLeft   bool
	diagnostics []failure.Diagnostic
	// final reports which provider errors the module lists as final.
	final func(text string) bool
}

// class returns the class of the operation's error, or "" for success. What happens to the process
// is never blamed on the configuration.
func (e outcome) class() failure.Class {
	died := e.exit == exitSignal || e.exit == exitCrash
	switch {
	case e.stateLeft, e.changes() && failure.Classify(e.diagnostics, e.final) == failure.StateNotSaved:
		return failure.StateNotSaved
	case e.exit == exitSuccess:
		return ""
	case died && e.changes() && (e.begun || !e.cancelled):
		return failure.Killed
	case e.cancelled:
		return failure.Interrupted
	case died || e.exit == exitNever:
		return failure.Transient
	default:
		return failure.Classify(e.diagnostics, e.final)
	}
}

// changes reports whether the operation may have changed anything outside of the engine's folder.
func (e outcome) changes() bool { return e.op != failure.OpInit && e.op != failure.OpPlan }
