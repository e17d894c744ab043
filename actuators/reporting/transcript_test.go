package reporting

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"testing"
)

func unpacked(t *testing.T, packed []byte) string {
	t.Helper()
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestATranscriptKeepsTheEnd(t *testing.T) {
	t.Run("nothing", func(t *testing.T) {
		if packed := (&Transcript{}).Packed(MaxPackedTranscript); packed != nil {
			t.Errorf("it keeps %q", unpacked(t, packed))
		}
	})
	t.Run("a little", func(t *testing.T) {
		kept := &Transcript{}
		kept.Add("one")
		kept.Add("two\n    more")
		if got := unpacked(t, kept.Packed(MaxPackedTranscript)); got != "one\ntwo\n    more\n" {
			t.Errorf("it keeps %q", got)
		}
	})
	t.Run("more than is kept", func(t *testing.T) {
		kept := &Transcript{}
		for i := range 10000 {
			kept.Add(fmt.Sprintf("message %d", i))
		}
		got := unpacked(t, kept.Packed(MaxPackedTranscript))
		if !strings.HasSuffix(got, "\nmessage 9998\nmessage 9999\n") || !strings.Contains(got[:60], " earlier messages omitted)\nmessage ") || len(got) > maxTranscript+60 {
			t.Errorf("it keeps %d bytes: %q...", len(got), got[:60])
		}
	})
	t.Run("what cannot be packed well", func(t *testing.T) {
		kept := &Transcript{}
		for range 300 {
			random := make([]byte, 75)
			_, _ = rand.Read(random)
			kept.Add(base64.StdEncoding.EncodeToString(random))
		}
		kept.Add("the end")
		packed := kept.Packed(MaxPackedTranscript)
		if len(packed) > MaxPackedTranscript || len(packed) < MaxPackedTranscript/3 || !strings.HasSuffix(unpacked(t, packed), "\nthe end\n") {
			t.Errorf("it keeps %d bytes", len(packed))
		}
	})
	t.Run("one message that is too big", func(t *testing.T) {
		kept := &Transcript{}
		kept.Add(strings.Repeat("x", maxTranscript))
		kept.Add("the end")
		if got := unpacked(t, kept.Packed(MaxPackedTranscript)); got != "(1 earlier messages omitted)\nthe end\n" {
			t.Errorf("it keeps %q", got)
		}
	})
}
