package tofu

import (
	"fmt"
	"strings"
	"time"
)

// maxTold bounds what is passed on of one message.
const maxTold = 8 << 10

// tell passes on what people are to read of a message. What an engine logs is for its developers, and may hold a state.
func (s *stream) tell(m message) {
	if s.output == nil || m.Type == "log" {
		return
	}
	text := s.redact.Clean(m.Message)
	if m.Diagnostic != nil {
		text = described(s.redact.Diagnostic(m.Diagnostic.diagnostic()))
	}
	if at, err := time.Parse(time.RFC3339, m.Timestamp); err == nil {
		text = at.UTC().Format(time.RFC3339) + " " + text
	}
	s.pass(text)
}

func (s *stream) pass(text string) {
	if s.output == nil {
		return
	}
	if len(text) > maxTold {
		text = strings.ToValidUTF8(text[:maxTold], "") + "..."
	}
	s.output(text)
}

// described is a diagnostic as an engine prints it for people, without the module's text.
func described(d Diagnostic) string {
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
