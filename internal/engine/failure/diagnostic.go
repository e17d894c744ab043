package failure

import (
	"fmt"
	"slices"
	"strings"

	"github.com/machine-iac/machine-iac-operator/internal/engine/redact"
)

// Severity is error or warning.
type Severity string

// The severities.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// Diagnostic is one error or warning from the engine or a provider.
type Diagnostic struct {
	Severity Severity
	// Summary is one line; Detail may have several.
	Summary string
	Detail  string
	// Address is the resource that the diagnostic is about, if any.
	Address string
	// File and Line are its place in the module. Line counts from 1; 0 means unknown.
	File string
	Line int
	// Context is the start of the enclosing block, for example `resource "aws_instance" "this"`.
	Context string
	// Snippet is the module's text at that place.
	Snippet string
	// Values describe the values involved, for example `var.size is "huge"`.
	Values []string
	// Withheld means that summary and detail may contain values of sensitive inputs, even without
	// sensitive strings. Use them only for classification, and show them only to people who may read
	// states.
	Withheld bool
}

// Text returns all the text that a classification may use.
func (d Diagnostic) Text() string {
	if d.Detail == "" {
		return d.Summary
	}
	return d.Summary + "\n" + d.Detail
}

// Reason returns the detail, or a note that it is withheld.
func (d Diagnostic) Reason() string {
	if d.Withheld {
		return redact.Withheld
	}
	return d.Detail
}

// ConditionFailed reports whether a precondition or postcondition of a managed resource failed.
// Detail is then the module's own message.
func (d Diagnostic) ConditionFailed() bool {
	broken := d.Summary == preconditionFailed || d.Summary == postconditionFailed
	return broken && strings.HasPrefix(d.Context, managedBlock)
}

// CheckFailed reports whether an assertion of a check block failed. Detail is then the module's own
// message.
func (d Diagnostic) CheckFailed() bool { return d.Summary == checkFailed }

const (
	checkFailed         = "Check block assertion failed"
	preconditionFailed  = "Resource precondition failed"
	postconditionFailed = "Resource postcondition failed"
	managedBlock        = "resource " // starts the context of errors in a managed resource
)

// message returns summary and detail in one line, unless they are withheld.
func (d Diagnostic) message() string {
	if d.Withheld && d.Address != "" {
		return "an error about " + d.Address + ": " + redact.Withheld
	}
	if d.Withheld {
		return redact.Withheld
	}
	summary := redact.OneLine(d.Summary)
	detail := redact.OneLine(d.Detail)
	switch {
	case detail == "":
		return summary
	case summary == "" || strings.Contains(detail, summary):
		return detail
	default:
		return strings.TrimRight(summary, ".:") + ": " + detail
	}
}

// ownWords reports whether the text is the module's own. Such text says what is wrong with a
// variable, not what its value is.
func (d Diagnostic) ownWords() bool {
	return d.ConditionFailed() || d.CheckFailed() || slices.Contains(aboutVariables, d.Summary)
}

// withholds reports whether the text must not be shown because it copies or describes sensitive
// values.
func (d Diagnostic) withholds(redactor *redact.Redactor) bool {
	if redactor.Withholds(d.Text()) {
		return true
	}
	if d.ownWords() {
		return false
	}
	return redactor.Withholds(d.Snippet) ||
		slices.ContainsFunc(d.Values, func(value string) bool { return strings.HasSuffix(value, sensitiveValue) })
}

// sensitiveValue ends the description of a sensitive value by OpenTofu and Terraform.
const sensitiveValue = "has a sensitive value"

// Redact returns the diagnostic without sensitive strings, truncated.
func (d Diagnostic) Redact(redactor *redact.Redactor) Diagnostic {
	d.Withheld = d.withholds(redactor)
	d.Summary = redactor.Shorten(d.Summary)
	d.Detail = redactor.Shorten(d.Detail)
	d.Address = redactor.Shorten(d.Address)
	d.Snippet = redactor.Shorten(d.Snippet)
	for i, value := range d.Values {
		d.Values[i] = redactor.Shorten(value)
	}
	return d
}

// Format returns the diagnostic as engines print theirs, without the module's source, and without
// its text if that is withheld.
func (d Diagnostic) Format() string {
	if d.Withheld {
		d.Summary, d.Detail = redact.Withheld, ""
	}
	return d.FormatWithheld()
}

// FormatWithheld is like Format, but includes text that is withheld.
func (d Diagnostic) FormatWithheld() string {
	var out strings.Builder
	kind := "Error"
	if d.Severity == SeverityWarning {
		kind = "Warning"
	}
	out.WriteString(kind + ": " + d.Summary)
	var about []string
	if d.Address != "" {
		about = append(about, "with "+d.Address)
	}
	if d.File != "" {
		about = append(about, fmt.Sprintf("on %s line %d", d.File, d.Line))
	}
	if d.Context != "" {
		about = append(about, "in "+d.Context)
	}
	if len(about) > 0 {
		out.WriteString("\n    " + strings.Join(about, ", "))
	}
	for line := range strings.Lines(d.Detail) {
		out.WriteString("\n    " + strings.TrimRight(line, "\n"))
	}
	return out.String()
}

// Errors returns the diagnostics that are errors.
func Errors(diagnostics []Diagnostic) []Diagnostic {
	var found []Diagnostic
	for _, diagnostic := range diagnostics {
		if diagnostic.Severity == SeverityError {
			found = append(found, diagnostic)
		}
	}
	return found
}
