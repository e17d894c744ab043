package supervisor

import (
	"encoding/binary"
	"io"
	"time"
)

// What a manager sends to its supervisor.
const (
	// beat says that the manager led at a time.
	beat byte = 'b'
	// resume is a beat after the supervisor has ended the engines: it may let engines live again.
	resume byte = 'r'
	// quit says that there is nothing left to guard.
	quit byte = 'q'
)

// What a supervisor sends to its manager, one byte each.
const (
	ready  byte = 'r' // it guards
	heard  byte = 'h' // a beat has come
	ending byte = 'i' // it has begun to end the engines
	ended  byte = 'e' // they are dead
)

// message is one message of a manager.
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
