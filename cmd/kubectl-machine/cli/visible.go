package cli

import (
	"io"
	"slices"
	"unicode/utf8"

	"github.com/machine-iac/machine-iac-operator/internal/inspect/print"
)

// Visible is a writer for a terminal. It escapes control characters in names, messages and errors
// from a cluster or an infrastructure. Everything that the plugin prints goes through it.
type Visible struct {
	Out io.Writer
	// rest is the start of a character that continues in the next write.
	rest []byte
}

// Write implements io.Writer.
func (v *Visible) Write(p []byte) (int, error) {
	all := slices.Concat(v.rest, p)
	whole := len(all)
	for from := max(0, whole-utf8.UTFMax); from < len(all); from++ {
		if utf8.RuneStart(all[from]) && !utf8.FullRune(all[from:]) {
			whole = from
			break
		}
	}
	v.rest = all[whole:]
	if _, err := io.WriteString(v.Out, print.Lines(string(all[:whole]))); err != nil {
		return 0, err
	}
	return len(p), nil
}
