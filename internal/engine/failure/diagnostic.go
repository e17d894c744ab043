package failure

import (
	"fmt"
	"slices"
	"strings"

	"github.com/machine-iac/machine-iac-operator/internal/engine/redact"
)

// Severity is a diagnostic's weight.
type Severity string

// The severities.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// Diagnostic is one error or warning of the engine or of a provider.
type Diagnostic struct {
	Severity Severity
	// Summary is one line, Detail may be many.
	Summary string
	Detail  string
	// Address is the resource that the diagnostic is about, where there is one.
	Address string
	// File and Line say where in the module it arose; Line counts from one, and is zero where that is unknown.
	File string
	Line int
	// Context is the beginning of the block that it arose in, for example `resource "aws_instance" "this"`.
	Context string
	// Snippet is the module's text at that place.
	Snippet string
	// Values are statements about the values in it, for example `var.size is "huge"`.
	Values []string
	// Withheld says that summary and detail may hold values of sensitive inputs, also without sensitive strings. They are for classifying, and for
	// those who may read states.
	Withheld bool
}

// text is everything that a classification may look at.
func (d Diagnostic) text() string {
	if d.Detail == "" {
		return d.Summary
	}
	return d.Summary + "\n" + d.Detail
}

// Reason is the detail, or that it is withheld.
func (d Diagnostic) Reason() string {
	if d.Withheld {
		return redact.Withheld
	}
	return d.Detail
}

// ConditionFailed reports whether it says that a precondition or a postcondition of a managed resource does not hold. Detail is then
// the module's own message.
func (d Diagnostic) ConditionFailed() bool {
	broken := d.Summary == preconditionFailed || d.Summary == postconditionFailed
	return broken && strings.HasPrefix(d.Context, managedBlock)
}

// CheckFailed reports whether it says that an assertion of a check block does not hold. Detail is then the module's own message.
func (d Diagnostic) CheckFailed() bool { return d.Summary == checkFailed }

const (
	checkFailed         = "Check block assertion failed"
	preconditionFailed  = "Resource precondition failed"
	postconditionFailed = "Resource postcondition failed"
	managedBlock        = "resource " // begins the context of what arose in a managed resource
)

// message is the diagnostic in one line: summary and detail, unless they are withheld.
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

// ownWords reports whether the text is the module's own: it says what is wrong with a variable, not what its value is.
func (d Diagnostic) ownWords() bool {
	return d.ConditionFailed() || d.CheckFailed() || slices.Contains(aboutVariables, d.Summary)
}

// withholds reports whether the text is not to be shown: it is a copy of sensitive values, or about one of them.
func (d Diagnostic) withholds(redactor *redact.Redactor) bool {
	if redactor.Withholds(d.text()) {
		return true
	}
	if d.ownWords() {
		return false
	}
	return redactor.Withholds(d.Snippet) || slices.ContainsFunc(d.Values, func(value string) bool { return strings.HasSuffix(value, sensitiveValue) })
}

// sensitiveValue ends what OpenTofu and Terraform say of a value that is sensitive.
const sensitiveValue = "has a sensitive value"

// Redact returns the diagnostic without sensitive strings and cut to size.
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

// Format is the diagnostic as engines print theirs for people, without the module's text, and without its own where that is withheld.
func (d Diagnostic) Format() string {
	if d.Withheld {
		d.Summary, d.Detail = redact.Withheld, ""
	}
	return d.FormatWithheld()
}

// FormatWithheld is the same with a text that is withheld.
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
