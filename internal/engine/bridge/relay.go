package bridge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/machine-iac/machine-iac-operator/internal/engine/provider"
)

// Name is what programs call the plugin that bridges to any of Terraform's providers.
const Name = "terraform-provider"

const (
	// maxRecorded is enough for eight providers. Longer responses than maxResponse are not recorded.
	maxRecorded, maxResponse = 32, 8 << 20
	// recordedFor is limited because the provider's files may be replaced.
	recordedFor = time.Hour
)

// Bridges are the running bridges.
type Bridges struct {
	dir, file string
	pool      *provider.Pool
	start     provider.Starter
	// recorded are responses that are the same for every bridge to a provider. A warm bridge makes the
	// schema of a large provider anew in half a second.
	recorded *lru.Cache
	clock    clock.PassiveClock
	// alone counts the bridges that were started outside of the pool, to name their folders.
	alone atomic.Int64
}

// New returns bridges that run file and can also read the paths in read. Their folders are
// in dir, which must be empty and private.
func New(dir, file string, read []string, o provider.Options) *Bridges {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	b := &Bridges{dir: dir, file: file, start: starter(o.Sandbox, read), recorded: lru.New(maxRecorded),
		clock: o.Clock}
	b.pool = provider.NewPoolOf(filepath.Join(dir, "p"), o, b.start)
	return b
}

// Find returns the path of the bridge in a folder of plugins. It returns "" if there is none
// or more than one, since programs request a version.
func Find(plugins string) string {
	if plugins == "" {
		return ""
	}
	found, err := filepath.Glob(filepath.Join(plugins, "resource-"+Name+"-v*", "pulumi-resource-"+Name))
	if err != nil || len(found) != 1 {
		return ""
	}
	return found[0]
}

// Close kills the bridges.
func (b *Bridges) Close() { b.pool.Close() }

// Relay looks like a running bridge to a run's CLI. Each of its connections gets its own bridge
// when it needs one.
type Relay struct {
	bridges  *Bridges
	use      provider.Use
	listener net.Listener
	server   *grpc.Server
	served   chan struct{}

	mu sync.Mutex
	// held are the bridges of the run, and free those that no connection uses.
	held []*held
}

// held is a bridge of a run.
type held struct {
	*process
	// lease is nil if the bridge was started only for this run.
	lease      *provider.Lease
	parameters string
	free       bool
}

// discard kills the bridge.
func (h *held) discard() error {
	if h.lease == nil {
		return h.End()
	}
	return h.lease.Discard()
}

// Serve starts serving a run whose bridges have the environment, files and owner of a use.
func (b *Bridges) Serve(use provider.Use) (*Relay, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("serving a bridge: %w", err)
	}
	r := &Relay{bridges: b, use: use, listener: listener, served: make(chan struct{})}
	r.server = grpc.NewServer(grpc.UnknownServiceHandler(r.handle), grpc.ForceServerCodec(codec{}),
		grpc.StatsHandler(connections{r}), grpc.WaitForHandlers(true), grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxSendMsgSize(maxMessage), grpc.ConnectionTimeout(startTimeout))
	go func() {
		defer close(r.served)
		_ = r.server.Serve(listener) // it was stopped
	}()
	return r, nil
}

// Port is the loopback port that the relay listens on.
func (r *Relay) Port() int { return r.listener.Addr().(*net.TCPAddr).Port }

// Discard kills the run's bridges and waits until they are gone, so that nothing continues after a
// failed CLI.
func (r *Relay) Discard() error {
	if r == nil {
		return nil
	}
	var errs []error
	for _, one := range r.take() {
		errs = append(errs, one.discard())
	}
	return errors.Join(errs...)
}

// Close stops the relay, if any, and leaves its bridges to later runs.
func (r *Relay) Close() error {
	if r == nil {
		return nil
	}
	r.server.Stop()
	<-r.served
	var errs []error
	for _, one := range r.take() {
		if one.lease == nil {
			errs = append(errs, one.End())
		} else {
			one.lease.GiveBack()
		}
	}
	return errors.Join(errs...)
}

func (r *Relay) take() []*held {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.held
	r.held = nil
	return all
}

// connection is a connection from a CLI.
type connection struct {
	mu sync.Mutex
	// attach and parameters are the requests that the connection's bridge gets first.
	attach, parameters []byte
	configured         bool
	bridge             *held
}

// request is a request to a bridge with certain parameters.
type request struct{ parameters, method, message string }

type recording struct {
	response []byte
	at       time.Time
}

// known returns the response to a request if a bridge gave it recently, or nil.
func (b *Bridges) known(of request) []byte {
	if found, ok := b.recorded.Get(of); ok && b.clock.Since(found.(recording).at) < recordedFor {
		return found.(recording).response
	}
	return nil
}

func (b *Bridges) record(of request, response []byte) {
	if len(response) <= maxResponse {
		b.recorded.Add(of, recording{response, b.clock.Now()})
	}
}

// Methods of a provider, as Pulumi names them.
const (
	service      = "/pulumirpc.ResourceProvider/"
	handshake    = service + "Handshake"
	attach       = service + "Attach"
	parameterize = service + "Parameterize"
	configure    = service + "Configure"
)

var (
	// same are requests with the same response from all bridges with the same parameters.
	same = []string{service + "GetPluginInfo", service + "GetSchema", service + "GetMapping", service + "GetMappings"}
	// unconfigured are requests that need no configuration. The bridge may still have that of an
	// earlier run.
	unconfigured = slices.Concat(same, []string{configure, service + "CheckConfig", service + "DiffConfig",
		service + "Cancel"})
)

// handle forwards a call. A provider's calls have one request and one response.
func (r *Relay) handle(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	of, ok := stream.Context().Value(connectionKey{}).(*connection)
	if !ok || !strings.HasPrefix(method, service) {
		return status.Errorf(codes.Unimplemented, "%s is not a method of a provider", method)
	}
	message := &frame{}
	if err := stream.RecvMsg(message); err != nil {
		return err
	}
	response, err := r.respond(stream.Context(), of, method, message.content)
	if err != nil {
		return err
	}
	return stream.SendMsg(&frame{content: response})
}

func (r *Relay) respond(ctx context.Context, of *connection, method string, message []byte) ([]byte, error) {
	switch method {
	case handshake:
		return nil, status.Error(codes.Unimplemented, "bridges do not support a handshake")
	case attach:
		of.mu.Lock()
		defer of.mu.Unlock()
		of.attach = message
		return nil, nil
	case parameterize:
		return r.parameterize(ctx, of, message)
	}
	of.mu.Lock()
	parameters, configured := of.parameters, of.configured
	of.mu.Unlock()
	if !configured && !slices.Contains(unconfigured, method) {
		return nil, status.Errorf(codes.FailedPrecondition, "%s is called before the provider is configured", method)
	}
	named := request{string(parameters), method, string(message)}
	repeats := slices.Contains(same, method)
	if repeats {
		if known := r.bridges.known(named); known != nil {
			return known, nil
		}
	}
	to, err := r.bridge(ctx, of)
	if err != nil {
		return nil, err
	}
	response, err := to.call(ctx, method, message)
	switch {
	case err != nil:
		return nil, err
	case repeats:
		r.bridges.record(named, response)
	case method == configure:
		of.mu.Lock()
		of.configured = true
		of.mu.Unlock()
	}
	return response, nil
}

// parameterize makes a connection's bridge the bridge to one provider. A bridge accepts that only
// once, so a warm one is not called again. The CLI repeats the request whenever it needs the
// schema.
func (r *Relay) parameterize(ctx context.Context, of *connection, message []byte) ([]byte, error) {
	of.mu.Lock()
	if of.parameters == nil {
		of.parameters = message
		if of.bridge != nil { // it has described itself already, so it cannot become the bridge to a provider
			r.release(of.bridge)
			of.bridge = nil
		}
	}
	again := bytes.Equal(of.parameters, message)
	of.mu.Unlock()
	if !again {
		return nil, status.Error(codes.FailedPrecondition, "the bridge serves another provider already")
	}
	named := request{"", parameterize, string(message)}
	if known := r.bridges.known(named); known != nil {
		return known, nil
	}
	to, err := r.bridge(ctx, of)
	if err != nil {
		return nil, err
	}
	r.bridges.record(named, to.parameterized)
	return to.parameterized, nil
}

// bridge returns the bridge of a connection. The first call finds or starts one.
func (r *Relay) bridge(ctx context.Context, of *connection) (*held, error) {
	of.mu.Lock()
	defer of.mu.Unlock()
	if of.bridge != nil {
		return of.bridge, nil
	}
	found, err := r.find(ctx, of.parameters)
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	if of.attach != nil { // a bridge without a client exits when it first calls the engine
		if _, err := found.call(ctx, attach, of.attach); err != nil {
			r.release(found)
			return nil, err
		}
	}
	if of.parameters != nil && found.parameterized == nil {
		if found.parameterized, err = found.call(ctx, parameterize, of.parameters); err != nil {
			r.release(found)
			return nil, err
		}
	}
	of.bridge = found
	return found, nil
}

// find returns a bridge with certain parameters that no other connection uses, from the run or from
// the pool.
func (r *Relay) find(ctx context.Context, parameters []byte) (*held, error) {
	named := string(parameters)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.held {
		if one.free && one.parameters == named && !one.Exited() {
			one.free = false
			return one, nil
		}
	}
	found := &held{parameters: named}
	use := r.use
	use.Files = map[string]string{named: r.bridges.file}
	found.lease = r.bridges.pool.Lend(ctx, use)
	running := found.lease.Running(named)
	if running == nil { // the pool is full
		var err error
		found.lease = nil
		dir := filepath.Join(r.bridges.dir, strconv.FormatInt(r.bridges.alone.Add(1), 10))
		if running, err = use.Start(r.bridges.start, dir, r.bridges.file); err != nil {
			return nil, err
		}
	}
	found.process = running.(*process)
	r.held = append(r.held, found)
	return found, nil
}

// release lets another connection of the run use a bridge.
func (r *Relay) release(one *held) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one.free = true
}
