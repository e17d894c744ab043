package stub

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Values travel between engine and provider as MessagePack. What a stub provider changes in them is little, so they are cut into pieces
// and put together again, and no piece is ever decoded.

// The two values that a stub provider writes: null, and the extension by which an engine means "not known".
var (
	packedNull    = []byte{0xc0}
	packedUnknown = []byte{0xd4, 0x00, 0x00}
)

// shape is what the first byte of a value means, together with the bytes of its length.
type shape struct {
	// header is how many bytes come before the content.
	header int
	// content is how many bytes a scalar has; items is how many values a list has, and twice as many as there are keys in a map.
	content, items int
	list, object   bool
}

var errPacked = errors.New("no MessagePack")

// shapeOf reads the beginning of a value.
func shapeOf(b []byte) (shape, error) {
	if len(b) == 0 {
		return shape{}, io.ErrUnexpectedEOF
	}
	switch first := b[0]; {
	case first <= 0x7f, first >= 0xe0, first == 0xc0, first == 0xc2, first == 0xc3: // small numbers, null, false, true
		return shape{header: 1}, nil
	case first <= 0x8f:
		return shape{header: 1, items: 2 * int(first&0x0f), object: true}, nil
	case first <= 0x9f:
		return shape{header: 1, items: int(first & 0x0f), list: true}, nil
	case first <= 0xbf:
		return shape{header: 1, content: int(first & 0x1f)}, nil
	case first >= 0xca && first <= 0xd3: // numbers of a fixed size
		return shape{header: 1, content: [...]int{4, 8, 1, 2, 4, 8, 1, 2, 4, 8}[first-0xca]}, nil
	case first >= 0xd4 && first <= 0xd8: // extensions of a fixed size, after a byte for their type
		return shape{header: 1, content: 1 + 1<<(first-0xd4)}, nil
	default:
		return longShape(b)
	}
}

// longShape reads the beginning of a value whose length is written out.
func longShape(b []byte) (shape, error) {
	var width int
	s := shape{}
	switch first := b[0]; first {
	case 0xc4, 0xc5, 0xc6: // bytes
		width = 1 << (first - 0xc4)
	case 0xc7, 0xc8, 0xc9: // extensions, after a byte for their type
		width, s.content = 1<<(first-0xc7), 1
	case 0xd9, 0xda, 0xdb: // text
		width = 1 << (first - 0xd9)
	case 0xdc, 0xdd:
		width, s.list = 2<<(first-0xdc), true
	case 0xde, 0xdf:
		width, s.object = 2<<(first-0xde), true
	default:
		return shape{}, fmt.Errorf("%w: it begins with %#x", errPacked, first)
	}
	if len(b) < 1+width {
		return shape{}, io.ErrUnexpectedEOF
	}
	var padded [4]byte
	copy(padded[4-width:], b[1:1+width])
	length := int(binary.BigEndian.Uint32(padded[:]))
	s.header = 1 + width
	switch {
	case s.list:
		s.items = length
	case s.object:
		s.items = 2 * length
	default:
		s.content += length
	}
	return s, nil
}

// cutValue returns the first value of b, with all that is in it, and what comes after it.
func cutValue(b []byte) (value, rest []byte, err error) {
	at := 0
	for pending := 1; pending > 0; pending-- {
		s, err := shapeOf(b[at:])
		if err != nil {
			return nil, nil, err
		}
		if len(b)-at-s.header < s.content {
			return nil, nil, io.ErrUnexpectedEOF
		}
		at += s.header + s.content
		pending += s.items
		if pending > len(b)-at+1 { // each value has a byte at least
			return nil, nil, io.ErrUnexpectedEOF
		}
	}
	return b[:at], b[at:], nil
}

// isNull reports whether a value is null.
func isNull(value []byte) bool { return len(value) == 1 && value[0] == packedNull[0] }

// isEmptyList reports whether a value is a list of nothing.
func isEmptyList(value []byte) bool { return len(value) == 1 && value[0] == 0x90 }

// textOf returns a value that is a string.
func textOf(value []byte) (string, error) {
	s, err := shapeOf(value)
	if err != nil {
		return "", err
	}
	isText := value[0] >= 0xa0 && value[0] <= 0xbf || value[0] >= 0xd9 && value[0] <= 0xdb
	if !isText || len(value) != s.header+s.content {
		return "", fmt.Errorf("%w: a name is expected", errPacked)
	}
	return string(value[s.header:]), nil
}

// rewriteObject returns a map with each value replaced by what change returns. Another value is returned as it is.
func rewriteObject(value []byte, change func(name string, value []byte) ([]byte, error)) ([]byte, error) {
	s, err := shapeOf(value)
	if err != nil || !s.object {
		return value, err
	}
	out, rest := append([]byte(nil), value[:s.header]...), value[s.header:]
	for range s.items / 2 {
		var key, item []byte
		if key, rest, err = cutValue(rest); err != nil {
			return nil, err
		}
		if item, rest, err = cutValue(rest); err != nil {
			return nil, err
		}
		name, err := textOf(key)
		if err != nil {
			return nil, err
		}
		changed, err := change(name, item)
		if err != nil {
			return nil, err
		}
		out = append(append(out, key...), changed...)
	}
	return append(out, rest...), nil
}

// rewriteList is rewriteObject for a list.
func rewriteList(value []byte, change func(value []byte) ([]byte, error)) ([]byte, error) {
	s, err := shapeOf(value)
	if err != nil || !s.list {
		return value, err
	}
	out, rest := append([]byte(nil), value[:s.header]...), value[s.header:]
	for range s.items {
		var item []byte
		if item, rest, err = cutValue(rest); err != nil {
			return nil, err
		}
		changed, err := change(item)
		if err != nil {
			return nil, err
		}
		out = append(out, changed...)
	}
	return append(out, rest...), nil
}
