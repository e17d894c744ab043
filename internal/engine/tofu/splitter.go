package tofu

import (
	"bytes"
	"strings"
)

// lineSplitter splits its input, written in pieces of any size, into lines. It is not safe for
// concurrent use.
type lineSplitter struct {
	// limit is the maximum length of a line in bytes; longer lines are skipped.
	limit int
	// each is called with every line, without its end and surrounding white space.
	each func(line []byte)
	// skipped is called for each line that is too long.
	skipped func()

	buffer  bytes.Buffer
	tooLong bool
}

func (l *lineSplitter) write(p []byte) {
	for len(p) > 0 {
		piece, rest, ended := bytes.Cut(p, []byte("\n"))
		p = rest
		l.add(piece)
		if ended {
			l.end()
		}
	}
}

func (l *lineSplitter) add(piece []byte) {
	if l.tooLong || l.buffer.Len()+len(piece) > l.limit {
		l.tooLong = true
		l.buffer.Reset()
		return
	}
	l.buffer.Write(piece)
}

// end ends an unfinished line.
func (l *lineSplitter) end() {
	defer l.buffer.Reset()
	if l.tooLong {
		l.tooLong = false
		l.skipped()
		return
	}
	if line := bytes.TrimSpace(l.buffer.Bytes()); len(line) > 0 {
		l.each(line)
	}
}

// text keeps the first limit bytes of the lines added to it.
type text struct {
	limit int
	strings.Builder
}

func (t *text) add(line string) {
	if t.Len() > 0 {
		line = "\n" + line
	}
	if room := t.limit - t.Len(); len(line) > room {
		line = line[:room]
	}
	t.WriteString(line)
}
