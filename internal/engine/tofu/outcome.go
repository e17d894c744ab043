package tofu

import (
	"context"
	"errors"
	"os/exec"
	"syscall"

	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
)

// exit says how an engine's process ended.
type exit string

const (
	exitSuccess exit = "success" // with code 0, or 2 from a plan
	exitFailure exit = "failure" // with code 1: it failed and says why
	exitCrash   exit = "crash"   // with another code
	exitSignal  exit = "signal"  // by a signal
	exitNever   exit = "never"   // it did not start
)

// exitOf reads it from what terraform-exec returns. That error's text must not be used: it repeats what the engine wrote, secrets
// and all, and where the engine succeeded although it was interrupted, asking for the text may panic.
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

// outcome is what is known of an engine's end.
type outcome struct {
	op   failure.Op
	exit exit
	// cancelled: the caller's context ended first, and the engine was interrupted.
	cancelled bool
	// begun: the engine had written something. One that has not is not beyond its own start.
	begun bool
	// stateLeft: it left a state that it could not save.
	stateLeft   bool
	diagnostics []failure.Diagnostic
	// final reports which texts of a provider the module lists as final.
	final func(text string) bool
}

// class returns the class of the operation's error, "" for success. What happens to the process is never the configuration's fault.
func (e outcome) class() failure.Class {
	died := e.exit == exitSignal || e.exit == exitCrash
	switch {
	case e.stateLeft:
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

// changes reports whether the operation may have changed something outside of the engine's folder.
func (e outcome) changes() bool { return e.op != failure.OpInit && e.op != failure.OpPlan }
