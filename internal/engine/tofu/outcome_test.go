package tofu

import (
	"context"
	"errors"
	"os/exec"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
)

func TestEndingClass(t *testing.T) {
	quota := []failure.Diagnostic{{Severity: failure.SeverityError, Summary: "VcpuLimitExceeded"}}
	listed := []failure.Diagnostic{{Severity: failure.SeverityError, Summary: "creating the server", Detail: "no such flavor"}}
	final := func(text string) bool { return text == "creating the server\nno such flavor" }
	cases := map[string]struct {
		ending outcome
		want   failure.Class
	}{
		"success": {
			ending: outcome{exit: exitSuccess, begun: true}, want: "",
		},
		"success although it was interrupted": {
			ending: outcome{exit: exitSuccess, begun: true, cancelled: true}, want: "",
		},
		"success that left a state behind is none": {
			ending: outcome{exit: exitSuccess, begun: true, stateLeft: true}, want: failure.StateNotSaved,
		},
		"a state left behind counts more than the interrupt": {
			ending: outcome{exit: exitFailure, begun: true, cancelled: true, stateLeft: true}, want: failure.StateNotSaved,
		},
		"a state left behind counts more than what the engine reported": {
			ending: outcome{exit: exitFailure, begun: true, stateLeft: true, diagnostics: quota}, want: failure.StateNotSaved,
		},
		"a failure that the engine reports": {
			ending: outcome{exit: exitFailure, begun: true, diagnostics: quota}, want: failure.Quota,
		},
		"an interrupt, whatever the engine reports": {
			ending: outcome{exit: exitFailure, begun: true, cancelled: true, diagnostics: quota}, want: failure.Interrupted,
		},
		"a signal": {
			ending: outcome{exit: exitSignal, begun: true}, want: failure.Killed,
		},
		"a kill after an interrupt": {
			ending: outcome{exit: exitSignal, begun: true, cancelled: true}, want: failure.Killed,
		},
		"an interrupt before the engine was up": {
			ending: outcome{exit: exitSignal, cancelled: true}, want: failure.Interrupted,
		},
		"a crash": {
			ending: outcome{exit: exitCrash, begun: true, diagnostics: quota}, want: failure.Killed,
		},
		"a signal while it plans, which leaves nothing behind": {
			ending: outcome{op: failure.OpPlan, exit: exitSignal, begun: true}, want: failure.Transient,
		},
		"a crash while a module is initialised": {
			ending: outcome{op: failure.OpInit, exit: exitCrash, begun: true}, want: failure.Transient,
		},
		"a kill after an interrupt while it plans": {
			ending: outcome{op: failure.OpPlan, exit: exitSignal, begun: true, cancelled: true}, want: failure.Interrupted,
		},
		"an engine that does not start": {
			ending: outcome{exit: exitNever}, want: failure.Transient,
		},
		"a failure that the module lists as final": {
			ending: outcome{exit: exitFailure, begun: true, diagnostics: listed, final: final}, want: failure.InvalidConfiguration,
		},
		"a failure that it does not list": {
			ending: outcome{exit: exitFailure, begun: true, diagnostics: listed}, want: failure.Unknown,
		},
		"an interrupt while it starts": {
			ending: outcome{exit: exitNever, cancelled: true}, want: failure.Interrupted,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.ending.class(); got != tc.want {
				t.Errorf("class is %q, want %q", got, tc.want)
			}
		})
	}
}

// interruptedError returns what terraform-exec does for an engine that succeeds although it is interrupted: an error in whose
// chain the context's error is, and no exit.
type interruptedError struct{}

func (interruptedError) Error() string        { panic("its text was asked for") }
func (interruptedError) Is(target error) bool { return target == context.Canceled }

func TestExitOf(t *testing.T) {
	exitWith := func(script string) error { return exec.Command("/bin/sh", "-c", script).Run() }
	cases := map[string]struct {
		err   error
		begun bool
		want  exit
	}{
		"no error":                         {err: nil, begun: true, want: exitSuccess},
		"code 1":                           {err: exitWith("exit 1"), begun: true, want: exitFailure},
		"another code":                     {err: exitWith("exit 11"), begun: true, want: exitCrash},
		"a signal":                         {err: exitWith("kill -KILL $$"), begun: true, want: exitSignal},
		"success although interrupted":     {err: interruptedError{}, begun: true, want: exitSuccess},
		"interrupted before it wrote":      {err: interruptedError{}, want: exitNever},
		"a binary that can't be executed":  {err: errors.New("fork/exec: permission denied"), want: exitNever},
		"a context that had ended already": {err: context.Canceled, want: exitNever},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := exitOf(tc.err, tc.begun); got != tc.want {
				t.Errorf("exit is %s, want %s", got, tc.want)
			}
		})
	}
}
