package print

import (
	"fmt"
	"strings"
	"unicode"
)

// Collapse returns a text on one line, with single spaces.
func Collapse(text string) string { return strings.Join(strings.Fields(text), " ") }

// Printable returns a text in which everything can be seen: what could move the cursor of a terminal, hide what stands beside it or change its order,
// such as escapes, overrides of the direction and letters without a width, is written out as \u001b.
func Printable(text string) string { return shown(text, "") }

// Lines is [Printable] for a text of several lines, whose line breaks and tabs stay.
func Lines(text string) string { return shown(text, "\n\t") }

func shown(text, kept string) string {
	hidden := func(r rune) bool { return !unicode.IsGraphic(r) && !strings.ContainsRune(kept, r) }
	text = strings.ToValidUTF8(text, "\ufffd")
	if strings.IndexFunc(text, hidden) < 0 {
		return text
	}
	var out strings.Builder
	for _, r := range text {
		switch {
		case !hidden(r):
			out.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&out, `\U%08x`, r)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return out.String()
}

// width is the length of lines of wrapped text.
const width = 120

// Wrapped breaks a text into lines with an indentation.
func Wrapped(indent, text string) string {
	var lines []string
	line := indent
	for _, word := range strings.Fields(text) {
		if len(line) > len(indent) && len(line)+1+len(word) > width {
			lines, line = append(lines, line), indent
		}
		if len(line) > len(indent) {
			line += " "
		}
		line += word
	}
	return strings.Join(append(lines, line), "\n")
}
