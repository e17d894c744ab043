// Package text prepares text for people: what a preview prints comes from manifests, modules, engines and clusters, and must neither break
// lines nor move the cursor of a terminal. It is this small because reading, comparing and printing share it.
package text

import "strings"

// OneLine returns a text on one line, with single spaces.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// Printable returns a text without control characters, which could move the cursor of a terminal.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return '\uFFFD'
		}
		return r
	}, text)
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
