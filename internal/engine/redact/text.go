package redact

import (
	"strings"
	"time"
)

// MaxMessage is the size limit of a message for people, in bytes.
const MaxMessage = 1 << 10

// LogLine returns one message of an engine as a log has it: with its time, where it is known, and cut to size. The text must be free
// of sensitive strings already: a cut must not leave half a secret.
func LogLine(at time.Time, text string) string {
	if !at.IsZero() {
		text = at.UTC().Format(time.RFC3339) + " " + text
	}
	return Shorten(text, maxField)
}

// Brief returns text in one line, cut to the size of a message.
func Brief(text string) string { return Shorten(OneLine(text), MaxMessage) }

// OneLine returns text with all white space replaced by single spaces.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// Shorten cuts text to limit bytes at most, never inside a character.
func Shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const mark = "..."
	return strings.ToValidUTF8(text[:limit-len(mark)], "") + mark
}
