package render

import (
	"errors"
	"slices"
	"strings"
)

// Fault is the kind of error of a field.
type Fault int

const (
	// Invalid is any error without a more specific Fault.
	Invalid Fault = iota
	// Missing is a required value that is not set.
	Missing
	// Unsupported is a value that is not one of the allowed ones.
	Unsupported
)

// FieldError is an error in one field, and its fix.
type FieldError struct {
	// Path of the field in the Machine, for example spec.providerSpec.value.placement.zone.
	Path string
	// Fault is the kind of error.
	Fault Fault
	// Value is the wrong value as shortened JSON. Empty if there is none, or if it may be secret.
	Value string
	// Problem says what is expected and what was found.
	Problem string
	// Fix says what to write.
	Fix string
	// InSecret is true if the error is in a Secret that the field names, so that changing the Secret
	// helps.
	InSecret bool
}

// Error implements error.
func (e *FieldError) Error() string {
	if e.Fix == "" {
		return e.Path + ": " + e.Problem
	}
	return e.Path + ": " + e.Problem + "; " + e.Fix
}

// Errors are all errors in a Machine's inputs, at least one. errors.As finds the first *FieldError.
type Errors []*FieldError

// Error implements error, one field a line.
func (e Errors) Error() string {
	lines := make([]string, 0, len(e))
	for _, err := range e {
		lines = append(lines, err.Error())
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the single errors.
func (e Errors) Unwrap() []error {
	errs := make([]error, 0, len(e))
	for _, err := range e {
		errs = append(errs, err)
	}
	return errs
}

// IsFieldError reports whether err can only be fixed by changing the Machine or a Secret that it
// names.
func IsFieldError(err error) bool {
	var field *FieldError
	return errors.As(err, &field)
}

// Under prefixes the paths of the errors in err, for Machine templates: "spec.template" for a
// MachineSet. It returns any other error unchanged.
func Under(prefix string, err error) error {
	var found Errors
	if prefix == "" || !errors.As(err, &found) {
		return err
	}
	moved := make(Errors, 0, len(found))
	for _, one := range found {
		below := *one
		below.Path = prefix + "." + one.Path
		moved = append(moved, &below)
	}
	return moved
}

// OnlySecrets reports whether all errors in err are in Secrets that the Machine names.
func OnlySecrets(err error) bool {
	var found Errors
	if !errors.As(err, &found) {
		return false
	}
	return !slices.ContainsFunc(found, func(e *FieldError) bool { return !e.InSecret })
}

// Warning is about a value that is accepted but possibly not intended.
type Warning struct {
	// Path is the field's path in the Machine.
	Path    string
	Message string
	// Hint says what to do. May be empty.
	Hint string
	// Unknown means that the field does not exist.
	Unknown bool
	// Canonical is the field's canonical name, if it is written in another case.
	Canonical string
	// Advice means that the field has an effect, but possibly not the intended one. Message then names
	// the field itself.
	Advice bool
}

// String renders the warning on one line.
func (w Warning) String() string {
	if w.Advice {
		return w.Message
	}
	if w.Hint == "" {
		return w.Path + ": " + w.Message
	}
	return w.Path + ": " + w.Message + "; " + w.Hint
}

// maxFindings limits the errors and warnings of one Machine.
const maxFindings = 50

// findings collects errors and warnings.
type findings struct {
	// under is the prefix of every reported path.
	under    string
	errs     Errors
	warnings []Warning
}

func (f *findings) fail(err *FieldError) {
	if len(f.errs) < maxFindings {
		f.errs = append(f.errs, err)
	}
}

// add takes over the errors in err.
func (f *findings) add(err error) {
	var failed Errors
	if errors.As(err, &failed) {
		for _, one := range failed {
			f.fail(one)
		}
	}
}

func (f *findings) warn(warning Warning) {
	if len(f.warnings) < maxFindings {
		f.warnings = append(f.warnings, warning)
	}
}

// unknown warns about an unknown field.
func (f *findings) unknown(path, hint string) {
	f.warn(Warning{Path: path, Message: "unknown field, ignored", Hint: hint, Unknown: true})
}

// covers reports whether there is an error at the path or above it.
func (f *findings) covers(path string) bool {
	return slices.ContainsFunc(f.errs, func(e *FieldError) bool { return within(path, e.Path) })
}

func (f *findings) err() error {
	if len(f.errs) == 0 {
		return nil
	}
	return Under(f.under, f.errs)
}

// warned returns the warnings.
func (f *findings) warned() []Warning {
	if f.under == "" {
		return f.warnings
	}
	moved := make([]Warning, 0, len(f.warnings))
	for _, one := range f.warnings {
		one.Path = f.under + "." + one.Path
		moved = append(moved, one)
	}
	return moved
}
