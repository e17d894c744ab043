package remote

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/internal/state/backend"
)

const loopback = "127.0.0.1:0"

// dial connects to the manager, which must present the ticket's certificate.
func (t Ticket) dial(ctx context.Context, now clock.PassiveClock, toState bool) (*link, error) {
	known := x509.NewCertPool()
	if !known.AppendCertsFromPEM(t.Certificate) {
		return nil, errors.New("the run's ticket lacks the manager's certificate")
	}
	dialer := tls.Dialer{
		NetDialer: &net.Dialer{Timeout: helloTimeout},
		Config:    &tls.Config{RootCAs: known, ServerName: serverName, MinVersion: tls.VersionTLS13, Time: now.Now},
	}
	conn, err := dialer.DialContext(ctx, "tcp", t.Address)
	if err != nil {
		return nil, err
	}
	l := &link{Conn: conn, clock: now}
	if err := l.send(hello{Run: t.Run, Password: t.Password, State: toState}); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return l, conn.SetDeadline(time.Time{})
}

// States serve the run's state on this machine and forward all requests to the manager. They are
// the backend of package terraform.
type States struct {
	endpoint backend.Endpoint
	listener net.Listener
	serving  sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
}

// newStates starts serving, unless the run has no state.
func newStates(ctx context.Context, w WorkOptions, o *opening) (*States, error) {
	s := &States{conns: map[net.Conn]bool{}}
	if o.State == "" {
		return s, nil
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp4", loopback)
	if err != nil {
		return nil, fmt.Errorf("serving the state of the run: %w", err)
	}
	s.listener = listener
	address := "http://" + listener.Addr().String() + o.State
	s.endpoint = backend.Endpoint{Address: address, Username: o.Username, Password: o.Password}
	if o.Locks {
		s.endpoint.LockAddress, s.endpoint.UnlockAddress = address, address
	}
	lasting := context.WithoutCancel(ctx) // an interrupted engine saves its state
	s.serving.Go(func() { s.accept(lasting, w.Ticket, w.Clock, w.Logger) })
	return s, nil
}

func (s *States) accept(ctx context.Context, ticket Ticket, now clock.Clock, log logr.Logger) {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return // closed
		}
		s.serving.Go(func() {
			manager, err := ticket.dial(ctx, now, true)
			if err != nil {
				log.Error(err, "Cannot reach the run's state; the engine retries")
				_ = conn.Close()
				return
			}
			s.mu.Lock()
			s.conns[conn] = true
			s.mu.Unlock()
			pipe(conn, manager)
			s.mu.Lock()
			delete(s.conns, conn)
			s.mu.Unlock()
		})
	}
}

// Start implements terraform.Backend.
func (s *States) Start(context.Context) error { return nil }

// Open implements terraform.Backend: it returns the only state.
func (s *States) Open(*state.Session) (backend.Endpoint, error) {
	if s.endpoint.Address == "" {
		return backend.Endpoint{}, errors.New("the run has no state")
	}
	return s.endpoint, nil
}

// OpenStore implements terraform.Backend. A process outside the manager executes a single run.
func (s *States) OpenStore(backend.Store) (backend.Endpoint, error) {
	return backend.Endpoint{}, errors.New("only the manager can execute a batch")
}

// OpenCopy implements terraform.Backend: the manager serves the copy.
func (s *States) OpenCopy([]byte) (backend.Endpoint, error) { return s.Open(nil) }

// Close implements terraform.Backend.
func (s *States) Close(context.Context) error {
	if s.listener == nil {
		return nil
	}
	err := s.listener.Close()
	s.mu.Lock()
	for conn := range s.conns {
		_ = conn.Close()
	}
	s.mu.Unlock()
	s.serving.Wait()
	return err
}
