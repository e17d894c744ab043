package failure

import (
	"errors"
	"fmt"
	"slices"

	"github.com/machine-iac/machine-iac-operator/internal/engine/redact"
)

// Class determines how an error is handled.
type Class string

// The classes of errors.
const (
	// InvalidConfiguration: only a different configuration helps.
	InvalidConfiguration Class = "InvalidConfiguration"
	// Quota: the account's quota or the infrastructure's capacity is exhausted. A retry may succeed
	// later.
	Quota Class = "Quota"
	// Credentials: missing, wrong, expired, or without the required permission.
	Credentials Class = "Credentials"
	// Throttled: the infrastructure rejects calls because there are too many.
	Throttled Class = "Throttled"
	// Transient: a connection or server failed. A retry may succeed.
	Transient Class = "Transient"
	// Interrupted: the context ended and the engine stopped cleanly. The state is saved.
	Interrupted Class = "Interrupted"
	// Locked: another process holds the state's lock. Nothing was done.
	Locked Class = "Locked"
	// Killed: the engine died before it could save the state. Its changes are unknown.
	Killed Class = "Killed"
	// StateNotSaved: the engine exited cleanly but could not save the state, which is in its folder.
	StateNotSaved Class = "StateNotSaved"
	// ImportMissing: an import block names an object that does not exist.
	ImportMissing Class = "ImportMissing"
	// ProviderNotInstalled: the engine found no version of a required provider. Nothing was done.
	ProviderNotInstalled Class = "ProviderNotInstalled"
	// Unknown: no other class applies.
	Unknown Class = "Unknown"
)

// Op is the operation that the engine runs, as text that fits before a colon.
type Op string

// The operations.
const (
	OpInit      Op = "initializing the module"
	OpOpen      Op = "opening the run"
	OpPlan      Op = "planning"
	OpApply     Op = "applying"
	OpApplyPlan Op = "applying the plan"
	OpDestroy   Op = "destroying"
)

// Error is a failed engine operation. Its text is short, for people, and redacted.
type Error struct {
	Op    Op
	Class Class
	// Diagnostics are the engine's errors; the Report has the warnings.
	Diagnostics []Diagnostic
	// Err is a cause outside of the diagnostics, for example the context's error. It may be nil.
	Err error
	// Hint is advice that is more specific than the class.
	Hint string
}

// HintOf returns the first hint for an error whose text may be shown, or "".
func HintOf(diagnostics []Diagnostic, hint func(text string) string) string {
	for _, diagnostic := range diagnostics {
		if diagnostic.Withheld {
			continue
		}
		if found := hint(diagnostic.Text()); found != "" {
			return found
		}
	}
	return ""
}

// hintedError adds a hint to an error.
type hintedError struct {
	error
	hint string
}

// Unwrap returns the error without the hint.
func (h *hintedError) Unwrap() error { return h.error }

// WithHint returns err with a [Hint], or err itself if hint is empty. It does not modify err, so
// goroutines can share it.
func WithHint(err error, hint string) error {
	if hint == "" {
		return err
	}
	return &hintedError{error: err, hint: hint}
}

// Hint returns the hint of an error, from WithHint or from the engine, or "".
func Hint(err error) string {
	if hinted, ok := errors.AsType[*hintedError](err); ok {
		return hinted.hint
	}
	if failed, ok := errors.AsType[*Error](err); ok {
		return failed.Hint
	}
	return ""
}

// Error implements error. It returns why the engine was stopped, or else the first diagnostic and
// the number of others.
func (e *Error) Error() string {
	text := string(e.Op)
	stopped := false
	switch e.Class {
	case Interrupted:
		text += " was interrupted"
		stopped = true
	case Killed:
		text += " was killed; its changes are unknown"
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

// Withheld reports whether the text of any of its errors is withheld.
func (e *Error) Withheld() bool {
	return slices.ContainsFunc(e.Diagnostics, func(d Diagnostic) bool { return d.Withheld })
}

// ClassOf returns the class of the Error in err's chain, Unknown if there is none, and "" for nil.
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
