package reporting

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/machine-iac/machine-iac-operator/internal/state"
)

const (
	// OutputAttachment names the attachment of a state that holds the engine's output of the last
	// run.
	OutputAttachment = "output"
	// WithheldAttachment names the attachment with the withheld output.
	WithheldAttachment = "withheld"
	// maxTranscript bounds the stored output of an engine.
	maxTranscript = 32 << 10
	// MaxPackedTranscript bounds the output once packed: stored inputs take precedence.
	MaxPackedTranscript = 8 << 10
	// MaxPackedWithheld bounds the withheld output once packed.
	MaxPackedWithheld = 4 << 10
)

// Transcript keeps the end of an engine's output. It is safe for concurrent use.
type Transcript struct {
	mu      sync.Mutex
	texts   []string
	size    int
	dropped int
}

// Add appends a text that an engine printed.
func (t *Transcript) Add(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.texts = append(t.texts, text)
	t.size += len(text) + 1
	for t.size > maxTranscript {
		t.drop()
	}
}

// drop removes the first text.
func (t *Transcript) drop() {
	t.size -= len(t.texts[0]) + 1
	t.texts[0], t.texts = "", t.texts[1:]
	t.dropped++
}

// Packed returns the transcript, compressed with gzip to at most limit bytes, or nil if it is
// empty.
func (t *Transcript) Packed(limit int) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.texts) > 0 {
		if packed := pack(t.text()); len(packed) <= limit {
			return packed
		}
		for range (len(t.texts) + 1) / 2 {
			t.drop()
		}
	}
	return nil
}

func (t *Transcript) text() string {
	text := strings.Join(t.texts, "\n") + "\n"
	if t.dropped > 0 {
		text = fmt.Sprintf("(%d earlier messages omitted)\n", t.dropped) + text
	}
	return text
}

// pack compresses a text. Writes to memory do not fail.
func pack(text string) []byte {
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	if _, err := writer.Write([]byte(text)); err != nil {
		return nil
	}
	if err := writer.Close(); err != nil {
		return nil
	}
	return packed.Bytes()
}

// KeepOutput stores the engine's output with the state, in the write that settles the run. Output
// that does not fit beside the inputs is dropped, as is that of an earlier run. Withheld output is
// dropped first. The error says why something was dropped.
func KeepOutput(ctx context.Context, session *state.Session, transcript, withheld *Transcript) error {
	output, secret := transcript.Packed(MaxPackedTranscript), withheld.Packed(MaxPackedWithheld)
	var errs []error
	for _, kept := range []state.Attachments{
		{OutputAttachment: output, WithheldAttachment: secret}, {OutputAttachment: output, WithheldAttachment: nil},
		{OutputAttachment: nil, WithheldAttachment: nil},
	} {
		err := session.Attach(ctx, kept)
		if err == nil {
			break // the write that settles the run reports the same failure
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
