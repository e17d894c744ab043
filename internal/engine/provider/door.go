package provider

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
)

const (
	// doorName is the socket of a door in its provider's folder.
	doorName = "door"
	// maxOpen limits the connections through one door. An engine has a few.
	maxOpen = 64
)

// door connects engines to a warm provider, since engines do not speak TLS with a provider that
// they have not started. It accepts connections from the processes of the run that has the provider
// and forwards them. The provider itself accepts connections only from this process.
type door struct {
	listener *net.UnixListener
	// address is where the provider listens, and secure the TLS configuration that it accepts.
	address net.Addr
	secure  *tls.Config
	served  chan struct{}

	mu    sync.Mutex
	admit func(pid int) bool // nil while no run has the provider
	open  map[net.Conn]struct{}
}

func openDoor(path string, address net.Addr, secure *tls.Config) (*door, error) {
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("creating the provider's door: %w", err)
	}
	d := &door{listener: listener, address: address, secure: secure, served: make(chan struct{}),
		open: map[net.Conn]struct{}{}}
	go d.serve()
	return d, nil
}

// let sets which processes may connect, or none if admit is nil. It closes all existing
// connections.
func (d *door) let(admit func(pid int) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.admit = admit
	for one := range d.open {
		_ = one.Close() // the other side closes with it
		delete(d.open, one)
	}
}

func (d *door) close() error {
	d.let(nil)
	err := d.listener.Close()
	<-d.served
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (d *door) serve() {
	defer close(d.served)
	for {
		from, err := d.listener.AcceptUnix()
		if err != nil {
			return // it was closed
		}
		if !d.enters(from) {
			_ = from.Close() // it was only accepted
			continue
		}
		go d.pass(from)
	}
}

// enters reports whether a connection is accepted, and records it as open.
func (d *door) enters(from *net.UnixConn) bool {
	pid, err := sandbox.Peer(from)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil || d.admit == nil || len(d.open) >= maxOpen || !d.admit(pid) {
		return false
	}
	d.open[from] = struct{}{}
	return true
}

// pass forwards data in both directions. Engines also connect without sending anything, to find out
// whether the provider is there.
func (d *door) pass(from *net.UnixConn) {
	defer func() {
		_ = from.Close()
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.open, from)
	}()
	said := bufio.NewReader(from)
	if _, err := said.Peek(1); err != nil {
		return
	}
	to, err := tls.Dial(d.address.Network(), d.address.String(), d.secure)
	if err != nil {
		return
	}
	defer to.Close() //nolint:errcheck // the provider may have ended
	go func() {
		_, _ = io.Copy(to, said) // ends when either side closes
		_ = to.Close()
	}()
	_, _ = io.Copy(from, to)
}
