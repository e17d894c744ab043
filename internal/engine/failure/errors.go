package failure

import (
	"errors"
	"fmt"
	"slices"

	"github.com/machine-iac/machine-iac-operator/internal/engine/redact"
)

// Class says how an error is to be handled.
type Class string

// The classes of errors.
const (
	// InvalidConfiguration: only another configuration helps.
	InvalidConfiguration Class = "InvalidConfiguration"
	// Quota: the account's quota or the infrastructure's capacity is used up; a later try may succeed.
	Quota Class = "Quota"
	// Credentials: they are missing, wrong, expired, or not allowed to do this.
	Credentials Class = "Credentials"
	// Throttled: the infrastructure wants fewer calls.
	Throttled Class = "Throttled"
	// Transient: a connection or a server failed; the next try may succeed.
	Transient Class = "Transient"
	// Interrupted: the context ended and the engine stopped in order. The state is saved.
	Interrupted Class = "Interrupted"
	// Locked: another process holds the state's lock. Nothing was done.
	Locked Class = "Locked"
	// Killed: the engine died before it could save the state. What it did is unknown.
	Killed Class = "Killed"
	// StateNotSaved: the engine ended in order but could not save the state; it left it in its folder.
	StateNotSaved Class = "StateNotSaved"
	// ImportMissing: an import block names an object that does not exist.
	ImportMissing Class = "ImportMissing"
	// Unknown: none of the above is known.
	Unknown Class = "Unknown"
)

// Op is what the engine was asked for. Its text fits before a colon.
type Op string

// The operations.
const (
	OpInit      Op = "initialising the module"
	OpOpen      Op = "opening the run"
	OpPlan      Op = "planning"
	OpApply     Op = "applying"
	OpApplyPlan Op = "applying the plan"
	OpDestroy   Op = "destroying"
)

// Error is an operation of the engine that failed. Its text is short, for people, and free of the run's sensitive strings.
type Error struct {
	Op    Op
	Class Class
	// Diagnostics are the engine's errors; warnings are left to the Report.
	Diagnostics []Diagnostic
	// Err is the cause outside of the diagnostics, for example the context's error. It may be nil.
	Err error
	// Hint says what to do about it, where more is known than by the class.
	Hint string
}

// HintOf returns the first hint about errors whose text may be shown, "" for none.
func HintOf(diagnostics []Diagnostic, hint func(text string) string) string {
	for _, diagnostic := range diagnostics {
		if diagnostic.Withheld {
			continue
		}
		if found := hint(diagnostic.text()); found != "" {
			return found
		}
	}
	return ""
}

// Error implements error: why it was stopped, or else the first diagnostic and the number of the others.
func (e *Error) Error() string {
	text := string(e.Op)
	stopped := false
	switch e.Class {
	case Interrupted:
		text += " was interrupted"
		stopped = true
	case Killed:
		text += " was killed, what it did is not known"
		stopped = true
	}
	if e.Err != nil && (stopped || len(e.Diagnostics) == 0) {
		return redact.Shorten(text+": "+redact.OneLine(e.Err.Error()), redact.MaxMessage)
	}
	if len(e.Diagnostics) == 0 {
		return text
	}
	text = redact.Shorten(text+": "+e.Diagnostics[0].message(), redact.MaxMessage)
	if e.Diagnostics[0].Withheld {
		text += " (class " + string(e.Class) + ")"
	}
	if more := len(e.Diagnostics) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Withheld reports whether the text of one of its errors is withheld.
func (e *Error) Withheld() bool {
	return slices.ContainsFunc(e.Diagnostics, func(d Diagnostic) bool { return d.Withheld })
}

// ClassOf returns the class of the Error in err's chain, Unknown where there is none, and "" for nil.
func ClassOf(err error) Class {
	if err == nil {
		return ""
	}
	var failed *Error
	if errors.As(err, &failed) {
		return failed.Class
	}
	return Unknown
}
