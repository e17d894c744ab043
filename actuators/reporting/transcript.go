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
	// OutputAttachment is the attachment of a state that holds the engine's output of the last run.
	OutputAttachment = "output"
	// WithheldAttachment is the one that holds what was withheld of it.
	WithheldAttachment = "withheld"
	// maxTranscript bounds what is kept of an engine's output.
	maxTranscript = 32 << 10
	// MaxPackedTranscript bounds the same once it is packed: stored inputs take precedence.
	MaxPackedTranscript = 8 << 10
	// MaxPackedWithheld bounds what was withheld of it.
	MaxPackedWithheld = 4 << 10
)

// Transcript keeps the end of an engine's output. It is safe for concurrent use.
type Transcript struct {
	mu      sync.Mutex
	texts   []string
	size    int
	dropped int
}

// Add adds a text that an engine printed.
func (t *Transcript) Add(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.texts = append(t.texts, text)
	t.size += len(text) + 1
	for t.size > maxTranscript {
		t.drop()
	}
}

// drop forgets the first text.
func (t *Transcript) drop() {
	t.size -= len(t.texts[0]) + 1
	t.texts[0], t.texts = "", t.texts[1:]
	t.dropped++
}

// Packed returns what is kept, compressed by gzip to a size at most, nil for nothing.
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
		text = fmt.Sprintf("(%d messages before these are not kept)\n", t.dropped) + text
	}
	return text
}

// pack returns nil where the memory that it writes to fails, which it does not.
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

// KeepOutput has the engine's output kept with the state, by the write that settles the run. Where it has no room beside the inputs it is
// not kept, nor is that of an earlier run; what was withheld of it gives way first. The error says why not all is kept.
func KeepOutput(ctx context.Context, session *state.Session, transcript, withheld *Transcript) error {
	output, secret := transcript.Packed(MaxPackedTranscript), withheld.Packed(MaxPackedWithheld)
	var errs []error
	for _, kept := range []state.Attachments{
		{OutputAttachment: output, WithheldAttachment: secret}, {OutputAttachment: output, WithheldAttachment: nil}, {OutputAttachment: nil, WithheldAttachment: nil},
	} {
		err := session.Attach(ctx, kept)
		if err == nil {
			break // where nothing has room, the write that settles the run fails with the same, and says so
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
