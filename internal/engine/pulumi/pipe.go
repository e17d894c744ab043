package pulumi

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/machine-iac/machine-iac-operator/internal/engine/workdir"
)

// drainGrace limits reading the remaining output of a process that has exited.
const drainGrace = 10 * time.Second

// pipe carries the events of the CLI. It is a named pipe that the CLI opens itself. Plugins that
// outlive the CLI do not inherit it, so it ends with the CLI, however that ends.
type pipe struct {
	in, out *os.File
	read    chan struct{}
}

// openPipe creates a pipe and reads from it until it is closed.
func openPipe(path string, read func(io.Reader)) (*pipe, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("creating the pipe for events: %w", err)
	}
	if err := workdir.MakePipe(path); err != nil {
		return nil, fmt.Errorf("creating the pipe for events: %w", err)
	}
	out, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // otherwise opening blocks until there is a writer
	if err != nil {
		return nil, fmt.Errorf("opening the pipe for events: %w", err)
	}
	in, err := os.OpenFile(path, os.O_WRONLY,
		0) // hold a writer open until the CLI opens the pipe, so that reading does not end
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

// close returns when everything that was written has been read.
func (p *pipe) close() {
	_ = p.in.Close() // nothing was written here
	cut := time.AfterFunc(drainGrace, func() { _ = p.out.Close() })
	<-p.read
	cut.Stop()
	_ = p.out.Close() // it was only read
}
