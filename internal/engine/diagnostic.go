package engine

import (
	"strings"
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
	// File and Line tell where in the module it arose; Line counts from one, and is zero where that is unknown.
	File string
	Line int
	// Context is the beginning of the block that it arose in, for example `resource "aws_instance" "this"`.
	Context string
	// Snippet is the module's text at that place.
	Snippet string
	// Values are statements about the values in it, for example `var.size is "huge"`.
	Values []string
}

// text is everything that a classification may look at.
func (d Diagnostic) text() string {
	if d.Detail == "" {
		return d.Summary
	}
	return d.Summary + "\n" + d.Detail
}

// ConditionFailed tells whether it says that a precondition or a postcondition of a managed resource does not hold. Detail is then
// the module's own message.
func (d Diagnostic) ConditionFailed() bool {
	broken := d.Summary == preconditionFailed || d.Summary == postconditionFailed
	return broken && strings.HasPrefix(d.Context, managedBlock)
}

const (
	preconditionFailed  = "Resource precondition failed"
	postconditionFailed = "Resource postcondition failed"
	managedBlock        = "resource " // begins the context of what arose in a managed resource
)

// maxMessage bounds a message for people, in bytes.
const maxMessage = 1 << 10

// message is the diagnostic in one line: summary and detail.
func (d Diagnostic) message() string {
	summary := oneLine(d.Summary)
	detail := oneLine(d.Detail)
	switch {
	case detail == "":
		return summary
	case summary == "" || strings.Contains(detail, summary):
		return detail
	default:
		return strings.TrimRight(summary, ".:") + ": " + detail
	}
}

// Brief answers text in one line, cut to what a message for people may be.
func Brief(text string) string { return shorten(oneLine(text), maxMessage) }

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// shorten cuts text to limit bytes at most, never inside a character.
func shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const mark = "..."
	return strings.ToValidUTF8(text[:limit-len(mark)], "") + mark
}

// errorsIn answers the diagnostics that are errors.
func errorsIn(diagnostics []Diagnostic) []Diagnostic {
	var found []Diagnostic
	for _, diagnostic := range diagnostics {
		if diagnostic.Severity == SeverityError {
			found = append(found, diagnostic)
		}
	}
	return found
}
