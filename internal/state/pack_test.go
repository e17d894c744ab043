package state

import (
	"bytes"
	"testing"
)

func TestPackAndSplitGiveTheSameBack(t *testing.T) {
	raw := bytes.Repeat([]byte("some state "), 1000)
	packed, err := packPlain(raw)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{1, 7, len(packed) - 1, len(packed), len(packed) + 1} {
		chunks := splitChunks(packed, size)
		for i, chunk := range chunks {
			if len(chunk) == 0 || len(chunk) > size {
				t.Errorf("size %d: chunk %d has %d bytes", size, i, len(chunk))
			}
		}
		if want := (len(packed) + size - 1) / size; len(chunks) != want {
			t.Errorf("size %d: %d chunks, want %d", size, len(chunks), want)
		}
		got, err := unpackContent(bytes.Join(chunks, nil))
		if err != nil || !bytes.Equal(got, raw) {
			t.Errorf("size %d: got %d bytes back (%v)", size, len(got), err)
		}
	}
}

func TestUnpackRefusesWhatDoesNotBelongTogether(t *testing.T) {
	one, _ := packPlain([]byte("one"))
	two, _ := packPlain([]byte("two"))
	flipped := bytes.Clone(one)
	flipped[len(flipped)-6] ^= 1 // in the checksum
	cases := map[string][]byte{
		"nothing":                      nil,
		"no gzip":                      []byte("state"),
		"cut short":                    one[:len(one)-1],
		"a wrong checksum":             flipped,
		"a part left over":             append(bytes.Clone(one), 'x'),
		"two states behind each other": append(bytes.Clone(one), two...),
	}
	for name, packed := range cases {
		t.Run(name, func(t *testing.T) {
			if raw, err := unpackContent(packed); err == nil {
				t.Errorf("got %q, want an error", raw)
			}
		})
	}
}
