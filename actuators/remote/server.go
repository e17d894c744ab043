package remote

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

const (
	// serverName is the name in every manager's certificate; processes check the certificate
	// itself.
	serverName = "machine-controllers"
	// maxUnknown bounds the connections that have not identified themselves yet.
	maxUnknown = 256
	// maxStateConnections bounds the connections of one run to its state.
	maxStateConnections = 16
	// certificateLife exceeds the life of any process.
	certificateLife = 10 * 365 * 24 * time.Hour
)

// ServerOptions configures a Server. All fields but Logger and Clock are required.
type ServerOptions struct {
	// Listen is the address to listen on. Advertise is the host that processes connect to, with a
	// port if it differs from the one listened on.
	Listen, Advertise string
	// Active reports whether this process leads. It must not block.
	Active func() bool
	// Logger logs refused connections; default is to discard.
	Logger logr.Logger
	// Clock defaults to the system clock.
	Clock clock.Clock
}

// Server accepts the connections of runs' processes.
type Server struct {
	options     ServerOptions
	certificate tls.Certificate
	pem         []byte
	unknown     chan struct{}

	mu        sync.Mutex
	listener  net.Listener
	address   string
	processes map[string]*Process
	serving   sync.WaitGroup
}

// NewServer returns a Server with a certificate of its own. It does not listen yet.
func NewServer(o ServerOptions) (*Server, error) {
	if o.Listen == "" || o.Advertise == "" || o.Active == nil {
		return nil, errors.New("creating the server of runs: a required option is missing")
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	s := &Server{options: o, unknown: make(chan struct{}, maxUnknown), processes: map[string]*Process{}}
	if err := s.certify(); err != nil {
		return nil, fmt.Errorf("creating the certificate of the server of runs: %w", err)
	}
	return s, nil
}

// certify makes the certificate.
func (s *Server) certify() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	now := s.options.Clock.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{serverName}, NotBefore: now.Add(-24 * time.Hour),
		NotAfter: now.Add(certificateLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	s.certificate = tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	var out bytes.Buffer
	if err := pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: der}); err != nil {
		return err
	}
	s.pem = out.Bytes()
	return nil
}

// Start listens and returns. Serving outlives ctx, because engines save their state when the
// manager stops. Close ends it.
func (s *Server) Start(ctx context.Context) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", s.options.Listen)
	if err != nil {
		return fmt.Errorf("starting the server of runs: %w; see --runs-bind-address", err)
	}
	address := s.options.Advertise
	if _, _, err := net.SplitHostPort(address); err != nil {
		_, port, err := net.SplitHostPort(listener.Addr().String())
		if err != nil {
			return errors.Join(fmt.Errorf("starting the server of runs: %w", err), listener.Close())
		}
		address = net.JoinHostPort(address, port)
	}
	secured := tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{s.certificate},
		MinVersion: tls.VersionTLS13})
	s.mu.Lock()
	s.listener, s.address = secured, address
	s.mu.Unlock()
	s.serving.Go(func() { s.accept(secured) })
	return nil
}

// Close ends serving, and every connection.
func (s *Server) Close() error {
	s.mu.Lock()
	listener, open := s.listener, s.processes
	s.listener, s.processes = nil, map[string]*Process{}
	s.mu.Unlock()
	if listener == nil {
		return nil
	}
	err := listener.Close()
	for _, one := range open {
		one.Close()
	}
	s.serving.Wait()
	return err
}

func (s *Server) accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			s.options.Logger.Error(err, "Cannot accept the connection of a run")
			<-s.options.Clock.After(time.Second)
			continue
		}
		select {
		case s.unknown <- struct{}{}:
		default:
			_ = conn.Close() // the process reconnects
			continue
		}
		s.serving.Go(func() { s.serve(conn) })
	}
}

// serve identifies a connection and hands it on.
func (s *Server) serve(conn net.Conn) {
	process, first, err := s.identify(conn)
	<-s.unknown
	if err != nil {
		s.options.Logger.Info("Refused a connection", "from", conn.RemoteAddr().String(), "why", err.Error())
		_ = conn.Close()
		return
	}
	if first.State {
		err = process.serveState(conn)
	} else {
		err = process.serve(&link{Conn: conn, clock: s.options.Clock})
	}
	if err != nil {
		s.options.Logger.Info("A connection of a run ended", "run", process.run, "state", first.State, "why", err.Error())
	}
}

func (s *Server) identify(conn net.Conn) (*Process, hello, error) {
	var first hello
	if err := conn.SetDeadline(s.options.Clock.Now().Add(helloTimeout)); err != nil {
		return nil, first, err
	}
	if err := (&link{Conn: conn, clock: s.options.Clock}).receive(&first, maxHello); err != nil {
		return nil, first, err
	}
	s.mu.Lock()
	process := s.processes[first.Run]
	s.mu.Unlock()
	var wanted [sha256.Size]byte
	if process != nil {
		wanted = process.password
	}
	given := sha256.Sum256([]byte(first.Password))
	if right := subtle.ConstantTimeCompare(given[:], wanted[:]) == 1; process == nil || !right {
		return nil, first, errors.New("unknown run or wrong token")
	}
	return process, first, conn.SetDeadline(time.Time{})
}

// Expect registers a run and returns its process, which has not connected yet, and its ticket.
// Close the process when the run has ended.
func (s *Server) Expect(run string) (*Process, Ticket, error) {
	random := make([]byte, 32)
	_, _ = rand.Read(random) // never fails: a failure ends the process
	password := hex.EncodeToString(random)
	p := &Process{
		server: s, run: run, password: sha256.Sum256([]byte(password)), connected: make(chan struct{}),
		ended:   make(chan struct{}),
		replies: make(chan *result, 1), states: make(chan struct{}, maxStateConnections), conns: map[net.Conn]bool{},
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		return nil, Ticket{}, fmt.Errorf("run %s: the server of runs is not serving", run)
	}
	if _, taken := s.processes[run]; taken {
		return nil, Ticket{}, fmt.Errorf("run %s is already open", run)
	}
	s.processes[run] = p
	return p, Ticket{Address: s.address, Certificate: s.pem, Run: run, Password: password}, nil
}

func (s *Server) forget(p *Process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.processes[p.run] == p {
		delete(s.processes, p.run)
	}
}
