package render

import (
	"errors"
	"slices"
	"strings"
)

// Fault is the way in which a field is wrong.
type Fault int

const (
	// Invalid is a value that is wrong in any way that has no name of its own.
	Invalid Fault = iota
	// Missing is a value that is required and not there.
	Missing
	// Unsupported is a value that is not one of those that there are to choose from.
	Unsupported
)

// FieldError says what is wrong with one field, and what to write instead.
type FieldError struct {
	// Path is the field's path in the Machine, for example spec.providerSpec.value.placement.zone.
	Path string
	// Fault is the way in which the field is wrong.
	Fault Fault
	// Value is the wrong value as JSON, shortened. Empty when there is none, or when it may be a secret.
	Value string
	// Problem says what is expected and what is there.
	Problem string
	// Fix says what to write.
	Fix string
	// InSecret is true when the fault is in a Secret that the field names, so that a change of the Secret helps.
	InSecret bool
}

// Error implements error.
func (e *FieldError) Error() string {
	if e.Fix == "" {
		return e.Path + ": " + e.Problem
	}
	return e.Path + ": " + e.Problem + "; " + e.Fix
}

// Errors are all that is wrong with a Machine's inputs, at least one. errors.As finds the first *FieldError in it.
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

// IsFieldError reports whether err says that only a change of the Machine or of a Secret that it names helps.
func IsFieldError(err error) bool {
	var field *FieldError
	return errors.As(err, &field)
}

// Under puts a prefix before the paths of the errors in err, for what is written as the template of a Machine:
// "spec.template" for a MachineSet. An error that holds none is returned as it is.
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

// OnlySecrets reports whether all that err says is wrong is in Secrets that the Machine names.
func OnlySecrets(err error) bool {
	var found Errors
	if !errors.As(err, &found) {
		return false
	}
	return !slices.ContainsFunc(found, func(e *FieldError) bool { return !e.InSecret })
}

// Warning is about a value that is accepted, but may not be what was meant.
type Warning struct {
	// Path is the field's path in the Machine.
	Path string
	// Message says what is the matter.
	Message string
	// Hint says what to do. May be empty.
	Hint string
	// Unknown says that there is no such field.
	Unknown bool
	// Canonical is the name that the field is read as, where it is written in another case; else empty.
	Canonical string
	// Advice says that the field has an effect, though perhaps not the one that was meant. Message then names the field itself.
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

// maxFindings bounds the errors and the warnings that one Machine can cause.
const maxFindings = 50

// findings collects errors and warnings.
type findings struct {
	// under is the prefix of every path that is reported.
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

// unknown warns of a field that there is not.
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
