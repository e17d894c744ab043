package remote

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

const (
	// maxFrame bounds a message. The largest hold a base64-encoded state, or a module.
	maxFrame = 2 * statefile.MaxBytes
	// maxMessageValues bounds the values in a message, which take some hundred bytes each once
	// decoded. A state is one value.
	maxMessageValues = 1 << 18
	// maxHello bounds the first message of a connection, whose sender is unknown.
	maxHello = 4 << 10
	// writeTimeout bounds a write to the other side.
	writeTimeout = 30 * time.Second
	// helloTimeout bounds the time until a connection has identified itself.
	helloTimeout = 10 * time.Second
)

// hello is the first message on a connection.
type hello struct {
	Run      string `json:"run"`
	Password string `json:"password"`
	// State requests the run's state instead of its operations.
	State bool `json:"state,omitempty"`
}

// kind is the type of a message.
type kind string

const (
	// From the manager. An operation is requested only when the previous one has ended.
	kindOpen      kind = "open"
	kindPlan      kind = "plan"
	kindPlanned   kind = "planned"
	kindApply     kind = "apply"
	kindApplyPlan kind = "apply-plan"
	kindDestroy   kind = "destroy"
	kindInterrupt kind = "interrupt"
	kindLeads     kind = "leads" // with the number of the beat that it answers

	// From the process.
	kindBeat     kind = "beat" // asks whether the manager leads
	kindProgress kind = "progress"
	kindOutput   kind = "output"
	kindWithheld kind = "withheld"
	kindResult   kind = "result"
)

// message is one frame in either direction.
type message struct {
	Kind kind     `json:"kind"`
	Beat int64    `json:"beat,omitempty"`
	Open *opening `json:"open,omitempty"`
	// Event belongs to kindProgress, Text to kindOutput and kindWithheld.
	Event  *engine.Event `json:"event,omitempty"`
	Text   []byte        `json:"text,omitempty"`
	Result *result       `json:"result,omitempty"`
}

// result is the outcome of an operation.
type result struct {
	Report  *engine.Report         `json:"report,omitempty"`
	Planned *engine.PlannedObjects `json:"planned,omitempty"`
	Failed  *failed                `json:"failed,omitempty"`
	// Gone is the outcome of a look.
	Gone bool `json:"gone,omitempty"`
	// Unsaved is a state that the engine failed to save.
	Unsaved []byte `json:"unsaved,omitempty"`
}

// failed is an error. Only a failure.Error has a class.
type failed struct {
	Op          failure.Op
	Class       failure.Class
	Diagnostics []failure.Diagnostic
	Text        string
	Hint        string
}

func packError(err error) *failed {
	if err == nil {
		return nil
	}
	known, ok := errors.AsType[*failure.Error](err)
	if !ok {
		return &failed{Text: err.Error()}
	}
	packed := &failed{Op: known.Op, Class: known.Class, Diagnostics: known.Diagnostics, Hint: known.Hint}
	if known.Err != nil {
		packed.Text = known.Err.Error()
	}
	return packed
}

// unpack returns the error. interrupted is the cause of an interruption, or nil.
func (f *failed) unpack(interrupted error) error {
	if f == nil {
		return nil
	}
	if f.Class == "" {
		return errors.New(f.Text)
	}
	unpacked := &failure.Error{Op: f.Op, Class: f.Class, Diagnostics: f.Diagnostics, Hint: f.Hint}
	switch {
	case f.Class == failure.Interrupted && interrupted != nil:
		unpacked.Err = interrupted
	case f.Text != "":
		unpacked.Err = errors.New(f.Text)
	}
	return unpacked
}

// link is a connection that carries messages. Sends are safe for concurrent use.
type link struct {
	net.Conn
	clock clock.PassiveClock
	mu    sync.Mutex
}

func (l *link) send(m any) error {
	content, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("writing a message: %w", err)
	}
	if len(content) > maxFrame {
		return fmt.Errorf("message of %d bytes exceeds the limit of %d; reduce the size of the module or state",
			len(content), maxFrame)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.SetWriteDeadline(l.clock.Now().Add(writeTimeout)); err != nil {
		return err
	}
	frame := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(content)), uint32(len(content)))
	_, err = l.Write(append(frame, content...))
	return err
}

func (l *link) receive(into any, limit uint32) error {
	var head [4]byte
	if _, err := io.ReadFull(l, head[:]); err != nil {
		return err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > limit {
		return fmt.Errorf("message of %d bytes exceeds the limit of %d", size, limit)
	}
	content, err := io.ReadAll(io.LimitReader(l, int64(size)))
	if err != nil {
		return err
	}
	if len(content) < int(size) {
		return io.ErrUnexpectedEOF
	}
	if err := statefile.CheckValues(content, maxMessageValues); err != nil {
		return fmt.Errorf("reading a message: %w", err)
	}
	if err := json.Unmarshal(content, into); err != nil {
		return fmt.Errorf("reading a message: %w", err)
	}
	return nil
}

// pipe copies data both ways until one connection ends, and closes both.
func pipe(a, b net.Conn) {
	done := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		go func() {
			_, _ = io.Copy(way[0], way[1]) // ignore the error: the engine retries
			done <- struct{}{}
		}()
	}
	<-done
	_, _ = a.Close(), b.Close()
	<-done
}
