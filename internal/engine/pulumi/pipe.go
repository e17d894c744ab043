package pulumi

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

// drainGrace bounds the reading of what a process has written that is gone.
const drainGrace = 10 * time.Second

// pipe carries the events of the CLI. It has a name, so that the CLI opens it by itself: no plugin that outlives the CLI inherits it,
// and it ends with the CLI, however that ends.
type pipe struct {
	in, out *os.File
	read    chan struct{}
}

// openPipe makes a pipe and reads from it until it is closed.
func openPipe(path string, read func(io.Reader)) (*pipe, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("making the pipe for events: %w", err)
	}
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		return nil, fmt.Errorf("making the pipe for events: %w", err)
	}
	out, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // it would wait for who writes
	if err != nil {
		return nil, fmt.Errorf("opening the pipe for events: %w", err)
	}
	in, err := os.OpenFile(path, os.O_WRONLY, 0) // until the CLI writes, somebody must, or there would be nothing to read
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening the pipe for events: %w", err), out.Close())
	}
	p := &pipe{in: in, out: out, read: make(chan struct{})}
	go func() {
		defer close(p.read)
		read(out)
	}()
	return p, nil
}

// close returns when everything that was written is read.
func (p *pipe) close() {
	_ = p.in.Close() // nothing was written here
	cut := time.AfterFunc(drainGrace, func() { _ = p.out.Close() })
	<-p.read
	cut.Stop()
	_ = p.out.Close() // it was only read
}
