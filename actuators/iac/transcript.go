package iac

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// attachedOutput is the attachment of a state that holds the engine's output of the last run.
const attachedOutput = "output"

const (
	// maxTranscript bounds what is kept of an engine's output, maxPackedTranscript the same once it is packed: stored inputs take precedence.
	maxTranscript       = 32 << 10
	maxPackedTranscript = 8 << 10
)

// transcript keeps the end of an engine's output. It is safe for concurrent use.
type transcript struct {
	mu      sync.Mutex
	texts   []string
	size    int
	dropped int
}

func (t *transcript) add(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.texts = append(t.texts, text)
	t.size += len(text) + 1
	for t.size > maxTranscript {
		t.drop()
	}
}

// drop forgets the first text.
func (t *transcript) drop() {
	t.size -= len(t.texts[0]) + 1
	t.texts[0], t.texts = "", t.texts[1:]
	t.dropped++
}

// packed returns what is kept, nil for nothing.
func (t *transcript) packed() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.texts) > 0 {
		if packed := pack(t.text()); len(packed) <= maxPackedTranscript {
			return packed
		}
		for range (len(t.texts) + 1) / 2 {
			t.drop()
		}
	}
	return nil
}

func (t *transcript) text() string {
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

// markPhase separates a lookup from what follows it: its errors may be expected.
func (t *task) markPhase(search engine.Search) {
	switch {
	case search != engine.SearchNone:
		t.transcript.add("(A lookup: is there an instance that an earlier run has made?)")
	case t.decision.Lookup:
		t.transcript.add(fmt.Sprintf("(After the lookup: the %s itself.)", t.decision.Operation))
	}
}

// keepOutput has the engine's output kept with the state, by the write that settles the run. Where it has no room beside the inputs it is
// not kept, nor is that of an earlier run.
func (t *task) keepOutput(ctx context.Context) {
	err := t.session.Attach(ctx, state.Attachments{attachedOutput: t.transcript.packed()})
	if err != nil {
		t.actuator.logger.V(1).Info("The engine's output is not kept", "Machine", t.machine.Namespace+"/"+t.machine.Name, "reason", err.Error())
		_ = t.session.Attach(ctx, state.Attachments{attachedOutput: nil}) // the write that settles the run fails with the same, and says so
	}
}
