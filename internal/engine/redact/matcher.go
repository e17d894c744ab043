package redact

import (
	"strings"
	"unicode/utf8"
)

const (
	// minPiece is the length from which a shape is searched for in pieces, so that a part of a secret
	// is masked too, and the search time does not grow with the secrets.
	minPiece = 64
	// maxPieces limits the pieces of one shape.
	maxPieces = 1 << 10
)

// matcher finds texts in other texts. It is a prefix tree.
type matcher struct {
	first [256]*branch
	count int
}

// branch is a node of the tree.
type branch struct {
	label string
	// ends means that a text ends here.
	ends bool
	next []*branch
}

// add adds a text to search for, in pieces if it is long.
func (m *matcher) add(text string) {
	size := max(minPiece, len(text)/maxPieces)
	for len(text) > size {
		end := size
		for range utf8.UTFMax - 1 {
			if !utf8.RuneStart(text[end]) {
				end--
			}
		}
		m.insert(text[:end])
		if rest := text[end:]; len(rest) >= size {
			text = rest
			continue
		}
		begin := len(text) - size // the last piece overlaps: a short one would match everywhere
		for begin < end && !utf8.RuneStart(text[begin]) {
			begin++
		}
		text = text[begin:]
		break
	}
	m.insert(text)
}

func (m *matcher) insert(text string) {
	if text == "" {
		return
	}
	at := m.first[text[0]]
	if at == nil {
		at = &branch{label: text[:1]}
		m.first[text[0]] = at
	}
	if at.insert(text[1:]) {
		m.count++
	}
}

// insert adds a text below a branch, and reports whether it is new.
func (b *branch) insert(rest string) bool {
	for rest != "" {
		next := b.to(rest[0])
		if next == nil {
			b.next = append(b.next, &branch{label: rest, ends: true})
			return true
		}
		shared := sharedPrefix(next.label, rest)
		if shared < len(next.label) {
			next.split(shared)
		}
		b, rest = next, rest[shared:]
	}
	added := !b.ends
	b.ends = true
	return added
}

func (b *branch) split(at int) {
	b.next = []*branch{{label: b.label[at:], ends: b.ends, next: b.next}}
	b.label, b.ends = b.label[:at], false
}

func (b *branch) to(first byte) *branch {
	for _, next := range b.next {
		if next.label[0] == first {
			return next
		}
	}
	return nil
}

func sharedPrefix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// longest returns the length of the longest text that is a prefix of another, or zero.
func (m *matcher) longest(text string) int {
	found, done := 0, 0
	for at := m.first[text[0]]; at != nil && strings.HasPrefix(text[done:], at.label); {
		done += len(at.label)
		if at.ends {
			found = done
		}
		if done == len(text) {
			break
		}
		at = at.to(text[done])
	}
	return found
}

// span is a part of a text.
type span struct{ from, to int }

// spans returns the matches in a text. Adjacent matches are merged.
func (m *matcher) spans(text string) []span {
	if m.count == 0 {
		return nil
	}
	var found []span
	for i := range len(text) {
		length := m.longest(text[i:])
		if length == 0 {
			continue
		}
		last := len(found) - 1
		if last >= 0 && i <= found[last].to {
			found[last].to = max(found[last].to, i+length)
			continue
		}
		found = append(found, span{i, i + length})
	}
	return found
}

// replace returns a text with each match replaced.
func (m *matcher) replace(text, with string) string {
	found := m.spans(text)
	if len(found) == 0 {
		return text
	}
	var out strings.Builder
	done := 0
	for _, part := range found {
		out.WriteString(text[done:part.from])
		out.WriteString(with)
		done = part.to
	}
	out.WriteString(text[done:])
	return out.String()
}
