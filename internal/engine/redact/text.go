package redact

import (
	"strings"
	"time"
)

// MaxMessage is the size limit of a message for people, in bytes.
const MaxMessage = 1 << 10

// LogLine formats an engine's message for a log: with its time, if known, and truncated. The text
// must be redacted already, so that no half of a secret remains.
func LogLine(at time.Time, text string) string {
	if !at.IsZero() {
		text = at.UTC().Format(time.RFC3339) + " " + text
	}
	return Shorten(text, maxField)
}

// Brief returns text in one line, truncated to MaxMessage.
func Brief(text string) string { return Shorten(OneLine(text), MaxMessage) }

// OneLine returns text with all white space replaced by single spaces.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// Shorten truncates text to at most limit bytes, never inside a character.
func Shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const mark = "..."
	return strings.ToValidUTF8(text[:limit-len(mark)], "") + mark
}
