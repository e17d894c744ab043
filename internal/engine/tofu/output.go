package tofu

import (
	"time"

	"github.com/machine-iac/machine-iac-operator/internal/engine/redact"
)

// print passes on messages for people. It drops the engine's logs, which are for its developers and
// may contain a state.
func (s *stream) print(m message) {
	if s.output == nil || m.Type == "log" {
		return
	}
	text := s.redact.Redact(m.Message)
	switch {
	case m.Diagnostic != nil:
		diagnostic := diagnosticOf(m.Diagnostic).Redact(s.redact)
		text = diagnostic.Format()
		if diagnostic.Withheld {
			s.withhold(diagnostic.FormatWithheld())
		}
	case s.redact.Withholds(m.Message):
		s.withhold(text)
		text = "(" + redact.Withheld + ")"
	}
	at, err := time.Parse(time.RFC3339, m.Timestamp)
	if err != nil {
		at = time.Time{}
	}
	s.output(redact.LogLine(at, text))
}

func (s *stream) withhold(text string) {
	if s.withheld != nil {
		s.withheld(redact.LogLine(time.Time{}, text))
	}
}

func (s *stream) pass(text string) {
	if s.output != nil {
		s.output(redact.LogLine(time.Time{}, text))
	}
}
