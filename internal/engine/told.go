package engine

import (
	"fmt"
	"strings"
	"time"
)

// LogLine is one message of an engine as people are to read it: with the time, where it is known, and cut to size. The text must be free of
// sensitive strings already: a cut must not leave half a secret.
func LogLine(at time.Time, text string) string {
	if !at.IsZero() {
		text = at.UTC().Format(time.RFC3339) + " " + text
	}
	return shorten(text, maxField)
}

// Format is the diagnostic as engines print theirs for people, without the module's text.
func (d Diagnostic) Format() string {
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
