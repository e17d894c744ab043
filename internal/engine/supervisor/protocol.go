package supervisor

import (
	"encoding/binary"
	"io"
	"time"
)

// Messages from a manager to its supervisor.
const (
	// beat means that the manager led at a time.
	beat byte = 'b'
	// resume is a beat after the supervisor has stopped the engines. It allows engines again.
	resume byte = 'r'
	// quit means that there is nothing left to guard.
	quit byte = 'q'
)

// Messages from a supervisor to its manager, one byte each.
const (
	ready  byte = 'r' // it is guarding
	heard  byte = 'h' // a heartbeat arrived
	ending byte = 'i' // it is stopping the engines
	ended  byte = 'e' // the engines are dead
)

// message is one message from a manager.
type message struct {
	kind byte
	at   time.Duration
}

const messageSize = 9

func (r message) encode() []byte {
	return binary.LittleEndian.AppendUint64([]byte{r.kind}, uint64(r.at))
}

// readRecord returns an error at the end of the pipe.
func readRecord(from io.Reader) (message, error) {
	var raw [messageSize]byte
	if _, err := io.ReadFull(from, raw[:]); err != nil {
		return message{}, err
	}
	return message{kind: raw[0], at: time.Duration(binary.LittleEndian.Uint64(raw[1:]))}, nil
}
