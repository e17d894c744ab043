package remote

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
)

// dialTimeout bounds connecting to the state backend on this machine.
const dialTimeout = 10 * time.Second

// errEnded means that a connection ended before the operation did.
var errEnded = errors.New("the connection to the run's process has ended")

// Process is the process of one run, as seen by the manager. Its only connection is never
// reestablished: when it ends, the run ends.
type Process struct {
	server   *Server
	run      string
	password [sha256.Size]byte
	// connected is closed when the process has connected; ended is closed when its connection has
	// ended and it can send nothing more.
	connected, ended chan struct{}
	replies          chan *result
	states           chan struct{}

	mu     sync.Mutex
	link   *link
	closed bool
	// why is why it has ended.
	why error
	// led is the last time leadership was confirmed to the process.
	led time.Time
	// conns are its connections; listeners receive its reports.
	conns     map[net.Conn]bool
	listeners listeners
	// backend is the endpoint of its state, or empty.
	backend string
}

// listeners receive a run's reports while it executes.
type listeners struct {
	progress         func(engine.Event)
	output, withheld func(text string)
}

// Connected is closed once the process has connected.
func (p *Process) Connected() <-chan struct{} { return p.connected }

// Led is the last time leadership was confirmed, or zero.
func (p *Process) Led() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.led
}

// Close closes the connections of the process, which ends its engine. It may be called repeatedly.
func (p *Process) Close() {
	p.server.forget(p)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for conn := range p.conns {
		_ = conn.Close()
	}
}

// adopt registers a connection for Close.
func (p *Process) adopt(conn net.Conn) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return errors.Join(errors.New("the run has ended"), conn.Close())
	}
	p.conns[conn] = true
	return nil
}

func (p *Process) drop(conn net.Conn) {
	_ = conn.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, conn)
}

// serve reads from the connection until it ends.
func (p *Process) serve(conn *link) error {
	if err := p.adopt(conn); err != nil {
		return err
	}
	defer p.drop(conn)
	p.mu.Lock()
	taken := p.link != nil
	if !taken {
		p.link = conn
	}
	p.mu.Unlock()
	if taken {
		return errors.New("the run already has a process")
	}
	close(p.connected)
	err := p.read(conn)
	p.mu.Lock()
	p.why = err
	p.mu.Unlock()
	close(p.ended)
	return err
}

func (p *Process) read(conn *link) error {
	for {
		var m message
		if err := conn.receive(&m, maxFrame); err != nil {
			return err
		}
		p.mu.Lock()
		to := p.listeners
		p.mu.Unlock()
		switch {
		case m.Kind == kindBeat:
			if err := p.assure(conn, m.Beat); err != nil {
				return err
			}
		case m.Kind == kindProgress && m.Event != nil && to.progress != nil:
			to.progress(*m.Event)
		case m.Kind == kindOutput && to.output != nil:
			to.output(string(m.Text))
		case m.Kind == kindWithheld && to.withheld != nil:
			to.withheld(string(m.Text))
		case m.Kind == kindResult && m.Result != nil:
			select {
			case p.replies <- m.Result:
			default:
				return errors.New("unexpected result from the process")
			}
		}
	}
}

// assure extends the engine's life if this process leads. The time is taken beforehand, so that the
// engine never outlives it.
func (p *Process) assure(conn *link, beat int64) error {
	if !p.server.options.Active() {
		return nil
	}
	p.mu.Lock()
	p.led = p.server.options.Clock.Now()
	p.mu.Unlock()
	return conn.send(message{Kind: kindLeads, Beat: beat})
}

// serveState connects a process to its state.
func (p *Process) serveState(conn net.Conn) error {
	select {
	case p.states <- struct{}{}:
		defer func() { <-p.states }()
	default:
		return errors.Join(errors.New("the run has too many connections to its state"), conn.Close())
	}
	p.mu.Lock()
	address := p.backend
	p.mu.Unlock()
	if address == "" {
		return errors.Join(errors.New("the run has no state"), conn.Close())
	}
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout) //nolint:forbidigo // a connection has no context
	defer cancel()
	var dialer net.Dialer
	backend, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return errors.Join(err, conn.Close())
	}
	if err := p.adopt(conn); err != nil {
		return errors.Join(err, backend.Close())
	}
	defer p.drop(conn)
	pipe(conn, backend)
	return nil
}

// call makes the process execute an operation and waits for the result. When ctx ends, the process
// is interrupted and has patience to exit cleanly. An error means that there is no result and that
// the process can send nothing more.
func (p *Process) call(ctx context.Context, m message, patience time.Duration) (*result, error) {
	p.mu.Lock()
	conn := p.link
	p.mu.Unlock()
	if conn == nil {
		return nil, errors.New("the run's process has not connected")
	}
	if err := conn.send(m); err != nil {
		return nil, p.give(fmt.Errorf("%w: %w", errEnded, err))
	}
	select {
	case reply := <-p.replies:
		return reply, nil
	case <-p.ended:
		return p.last()
	case <-ctx.Done():
	}
	if err := conn.send(message{Kind: kindInterrupt}); err != nil {
		return nil, p.give(fmt.Errorf("%w: %w", errEnded, err))
	}
	select {
	case reply := <-p.replies:
		return reply, nil
	case <-p.ended:
		return p.last()
	case <-p.server.options.Clock.After(patience):
		return nil, p.give(fmt.Errorf("the process was interrupted (%w) and did not exit within %s", context.Cause(ctx),
			patience))
	}
}

// last returns a result received before the connection ended.
func (p *Process) last() (*result, error) {
	select {
	case reply := <-p.replies:
		return reply, nil
	default:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return nil, fmt.Errorf("%w: %w", errEnded, p.why)
}

// give abandons the process: once it returns, the process can send nothing more.
func (p *Process) give(why error) error {
	p.Close()
	<-p.ended
	return why
}

// listen sets the receivers of the run's reports and the endpoint of its state.
func (p *Process) listen(to listeners, backend string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listeners, p.backend = to, backend
}
