package backend

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/machine-iac/machine-iac-operator/internal/state"
)

const (
	defaultMaxBody     = 64 << 20
	defaultSaveTimeout = 2 * time.Minute

	loopback       = "127.0.0.1:0"
	pathPrefix     = "/states/"
	copyPrefix     = "/copies/"
	batchPrefix    = "/batches/"
	passwordBytes  = 32
	usernameBytes  = 8
	headerTimeout  = 10 * time.Second
	bodyTimeout    = time.Minute
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 16 << 10
)

// Options configure a Server. The zero value is usable.
type Options struct {
	// MaxBody is the maximum size of a state in bytes. Defaults to 64 MiB.
	MaxBody int64
	// SaveTimeout is how long a request waits for the API server before it fails with an error that engines retry.
	// Defaults to 2 minutes.
	SaveTimeout time.Duration
	// Logger logs rejected requests; optional.
	Logger logr.Logger
}

// Server serves the engines' http backend on loopback. Each Endpoint opens one state with its own password.
type Server struct {
	options Options

	mu      sync.Mutex
	server  *http.Server
	address string
	served  chan error
	// opened maps user names, and paths maps paths, to the same states.
	opened map[string]*openState
	paths  map[string]*openState
}

// New returns a Server. Start it.
func New(options Options) *Server {
	if options.MaxBody <= 0 {
		options.MaxBody = defaultMaxBody
	}
	if options.SaveTimeout <= 0 {
		options.SaveTimeout = defaultSaveTimeout
	}
	if options.Logger.GetSink() == nil {
		options.Logger = logr.Discard()
	}
	return &Server{options: options, opened: map[string]*openState{}, paths: map[string]*openState{}}
}

// Start listens on a free port of loopback and returns. It serves until Close rather than until ctx ends, because
// engines save their states while the manager stops.
func (b *Server) Start(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.server != nil {
		return errors.New("starting the state backend: it was started before")
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp4", loopback)
	if err != nil {
		return fmt.Errorf("starting the state backend: %w", err)
	}
	base := context.WithoutCancel(ctx)
	b.server = &http.Server{
		Handler:           http.HandlerFunc(b.serve),
		BaseContext:       func(net.Listener) context.Context { return base },
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       bodyTimeout,
		WriteTimeout:      bodyTimeout + b.options.SaveTimeout + headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(logr.ToSlogHandler(b.options.Logger), slog.LevelDebug),
	}
	b.address = "http://" + listener.Addr().String()
	b.served = make(chan error, 1)
	server, served := b.server, b.served
	go func() { served <- server.Serve(listener) }()
	return nil
}

// Close stops listening and drains requests until ctx ends; then it cancels them.
func (b *Server) Close(ctx context.Context) error {
	b.mu.Lock()
	server, served := b.server, b.served
	b.address = ""
	clear(b.opened)
	clear(b.paths)
	b.mu.Unlock()
	if server == nil {
		return nil
	}
	err := server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, server.Close())
	}
	select {
	case ended := <-served:
		served <- ended // for another Close
		if !errors.Is(ended, http.ErrServerClosed) {
			err = errors.Join(err, ended)
		}
	case <-ctx.Done():
	}
	if err != nil {
		return fmt.Errorf("closing the state backend: %w", err)
	}
	return nil
}

// Endpoint is the address and credentials of a state. It prints without the password.
type Endpoint struct {
	// Address, LockAddress and UnlockAddress are the http backend's settings of the same names.
	Address, LockAddress, UnlockAddress string
	// Username and Password open this state only.
	Username, Password string

	close func()
}

// Close invalidates the password. A request in progress may go on until the session ends.
func (e Endpoint) Close() {
	if e.close != nil {
		e.close()
	}
}

// String returns the address.
func (e Endpoint) String() string { return e.Address }

// GoString returns the address.
func (e Endpoint) GoString() string { return "state.Endpoint(" + e.Address + ")" }

// MarshalLog returns the address, for loggers.
func (e Endpoint) MarshalLog() any { return e.Address }

// MarshalJSON returns the address, so that no encoder shows the password.
func (e Endpoint) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "%q", e.Address), nil }

// Store stores the state of an endpoint.
type Store interface {
	// Read returns the state, or nil if none was stored yet.
	Read(ctx context.Context) ([]byte, error)
	// Write stores a state. An error maps to the status of the same error of a [state.Session].
	Write(ctx context.Context, raw []byte) error
}

// Pauser is a Store that makes an engine wait where it reads [Endpoint.Pause].
type Pauser interface {
	// Pause returns when the engine is to go on, or when ctx ends.
	Pause(ctx context.Context)
}

// Pause is the address that answers with an empty state, when the [Pauser] lets it.
func (e Endpoint) Pause() string { return e.Address + "?" + pauseQuery }

// sessionStore is the Store of one Machine.
type sessionStore struct{ *state.Session }

// Read implements Store.
func (s sessionStore) Read(ctx context.Context) ([]byte, error) {
	snapshot, err := s.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	return snapshot.Raw, nil
}

// Write implements Store.
func (s sessionStore) Write(ctx context.Context, raw []byte) error { return s.Put(ctx, raw) }

// Open returns an endpoint with a new random password for a session. A state has at most one endpoint.
func (b *Server) Open(session *state.Session) (Endpoint, error) {
	endpoint, err := b.open(&openState{store: sessionStore{session}}, pathPrefix+session.Key().String())
	if err != nil {
		return Endpoint{}, fmt.Errorf("opening state %s: %w", session.Key(), err)
	}
	endpoint.LockAddress, endpoint.UnlockAddress = endpoint.Address, endpoint.Address
	return endpoint, nil
}

// OpenStore returns an endpoint with a new random password for a state that combines several.
func (b *Server) OpenStore(store Store) (Endpoint, error) {
	endpoint, err := b.open(&openState{store: store}, batchPrefix+randomHex(usernameBytes))
	if err != nil {
		return Endpoint{}, fmt.Errorf("opening the state of several Machines: %w", err)
	}
	endpoint.LockAddress, endpoint.UnlockAddress = endpoint.Address, endpoint.Address
	return endpoint, nil
}

// OpenCopy returns an endpoint with a new random password for a read-only copy of a state, without locks.
func (b *Server) OpenCopy(content []byte) (Endpoint, error) {
	endpoint, err := b.open(&openState{fixed: content}, copyPrefix+randomHex(usernameBytes))
	if err != nil {
		return Endpoint{}, fmt.Errorf("opening the copy of a state: %w", err)
	}
	return endpoint, nil
}

func (b *Server) open(opened *openState, path string) (Endpoint, error) {
	username, password := randomHex(usernameBytes), randomHex(passwordBytes)
	opened.path, opened.password, opened.writing = path, sha256.Sum256([]byte(password)), make(chan struct{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.address == "" {
		return Endpoint{}, errors.New("the state backend is not serving")
	}
	if _, taken := b.paths[path]; taken {
		return Endpoint{}, errors.New("it is open already; close its endpoint first")
	}
	b.opened[username], b.paths[path] = opened, opened
	return Endpoint{
		Address: b.address + path, Username: username, Password: password,
		close: func() { b.closeEndpoint(username, opened) },
	}, nil
}

func (b *Server) closeEndpoint(username string, opened *openState) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.opened, username)
	if b.paths[opened.path] == opened {
		delete(b.paths, opened.path)
	}
}

// openState is an open endpoint.
type openState struct {
	store Store
	// fixed is the content of a copy, which has no store.
	fixed    []byte
	path     string
	password [sha256.Size]byte
	// writing limits the requests that read a state into memory to one.
	writing chan struct{}
	lock    engineLock
}

// authenticate returns the endpoint that the user may access at the path, or the status to reject the request with.
func (b *Server) authenticate(request *http.Request) (*openState, int) {
	username, password, _ := request.BasicAuth()
	given := sha256.Sum256([]byte(password))
	b.mu.Lock()
	opened, known := b.opened[username]
	_, exists := b.paths[request.URL.Path]
	b.mu.Unlock()
	var wanted [sha256.Size]byte
	if known {
		wanted = opened.password
	}
	right := subtle.ConstantTimeCompare(given[:], wanted[:]) == 1
	switch {
	case !known || !right:
		return nil, http.StatusUnauthorized
	case request.URL.Path == opened.path:
		return opened, http.StatusOK
	case exists:
		return nil, http.StatusForbidden
	}
	return nil, http.StatusNotFound
}

func randomHex(size int) string {
	random := make([]byte, size)
	_, _ = rand.Read(random) // never fails: it crashes the process instead
	return hex.EncodeToString(random)
}
