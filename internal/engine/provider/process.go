package provider

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/terraform-exec/tfexec"
	"github.com/prometheus/procfs"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
	"github.com/machine-iac/machine-iac-operator/internal/engine/workdir"
)

// The handshake between an engine and a provider plugin.
var handshake = plugin.HandshakeConfig{
	ProtocolVersion:  5,
	MagicCookieKey:   "TF_PLUGIN_MAGIC_COOKIE",
	MagicCookieValue: "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2",
}

const (
	// startTimeout limits the wait for a provider to become ready.
	startTimeout = 30 * time.Second
	// quitTimeout limits the wait for one to exit by itself.
	quitTimeout = 3 * time.Second
	// healthService is the name under which go-plugin serves a plugin's health.
	healthService = "plugin"
)

// Process is a running provider plugin. It serves one run at a time: an interrupt cancels every
// call in it, and its configuration is global.
type Process struct {
	dir    string
	client *plugin.Client
	config tfexec.ReattachConfig
	// address is where it listens, and secure the TLS configuration that it accepts. Only this process
	// has it.
	address net.Addr
	secure  *tls.Config
	door    *door         // nil if engines need not reach it
	ended   chan struct{} // closed to stop it
	once    sync.Once
}

// Start starts the plugin with exactly this environment in its own folder, which has its socket and
// is the only place it may write to. The plugin accepts connections only from this process, by
// mutual TLS with generated keys. confined may be nil.
func Start(dir, file string, environment map[string]string, confined *sandbox.Sandbox) (*Process, error) {
	if err := confined.Check(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("starting the provider %s: %w", filepath.Base(file), err)
	}
	config := &plugin.ClientConfig{
		HandshakeConfig:  handshake,
		VersionedPlugins: map[int]plugin.PluginSet{5: {}, 6: {}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		Cmd:              command(dir, file, environment, confined),
		SkipHostEnv:      true,
		StartTimeout:     startTimeout,
		Logger:           hclog.NewNullLogger(),
		AutoMTLS:         true,
	}
	p := &Process{dir: dir, client: plugin.NewClient(config), ended: make(chan struct{})}
	if err := p.start(); err != nil {
		// its text may contain the plugin's output
		return nil, errors.Join(fmt.Errorf("starting the provider %s failed", filepath.Base(file)), p.End())
	}
	reached := p.client.ReattachConfig()
	p.address, p.secure = reached.Addr, config.TLSConfig.Clone() // set by the start
	p.secure.NextProtos = []string{"h2"}
	p.secure.ClientSessionCache = tls.NewLRUClientSessionCache(1) // most of the cost of TLS is in the handshake
	p.config = tfexec.ReattachConfig{
		Protocol:        string(reached.Protocol),
		ProtocolVersion: p.client.NegotiatedVersion(),
		Pid:             reached.Pid,
		Test:            true, // makes the engine leave it running
	}
	return p, nil
}

// Open creates the door by which engines reach it. It stays closed until [Process.Admit].
func (p *Process) Open() (err error) {
	path := filepath.Join(p.dir, doorName)
	if p.door, err = openDoor(path, p.address, p.secure); err != nil {
		return err
	}
	p.config.Addr = tfexec.ReattachConfigAddr{Network: "unix", String: path}
	return nil
}

// Admit sets which processes may use the door, or none if admit is nil.
func (p *Process) Admit(admit func(pid int) bool) { p.door.let(admit) }

// Dial connects this process to it.
func (p *Process) Dial(ctx context.Context) (net.Conn, error) {
	return (&tls.Dialer{Config: p.secure}).DialContext(ctx, p.address.Network(), p.address.String())
}

// command returns the command for a plugin that no engine starts.
func command(dir, file string, environment map[string]string, confined *sandbox.Sandbox) *exec.Cmd {
	c := exec.Command(file)
	c.Dir = dir
	c.SysProcAttr = workdir.ChildAttributes()
	c.Env = []string{"HOME=" + dir, "TMPDIR=" + dir}
	for name, value := range environment {
		c.Env = append(c.Env, name+"="+value)
	}
	confined.Wrap(c, sandbox.Policy{Read: []string{filepath.Dir(file)}, Write: []string{dir}})
	return c
}

// start starts the plugin on a thread that lives as long as the plugin, which dies with the thread
// that starts it.
func (p *Process) start() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		_, err := p.client.Start()
		started <- err
		<-p.ended
	}()
	return <-started
}

// Reattach returns what an engine needs to use it.
func (p *Process) Reattach() tfexec.ReattachConfig { return p.config }

// Exited reports whether the process has exited.
func (p *Process) Exited() bool { return p.client.Exited() }

// Responds returns an error unless the process answers a health check before ctx ends. A stopped
// process, or one out of threads, does not.
func (p *Process) Responds(ctx context.Context) error {
	// Dial has secured it
	connection, err := grpc.NewClient("passthrough:///provider", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return p.Dial(ctx) }))
	if err != nil {
		return fmt.Errorf("reaching the provider: %w", err)
	}
	defer func() { _ = connection.Close() }()
	return Healthy(ctx, connection, healthService)
}

// Healthy returns an error unless a plugin responds to a health check, which it may not implement.
func Healthy(ctx context.Context, connection *grpc.ClientConn, service string) error {
	_, err := grpc_health_v1.NewHealthClient(connection).Check(ctx,
		&grpc_health_v1.HealthCheckRequest{Service: service})
	switch status.Code(err) {
	case codes.OK, codes.Unimplemented, codes.NotFound:
		return nil
	default:
		return fmt.Errorf("the plugin does not respond: %w", err)
	}
}

// Size is what a process uses.
type Size struct {
	// Memory is its private resident memory in bytes, without pages of its executable, which can be
	// read again.
	Memory int64
	// Files is the number of open files and connections, and Processes the number of running child
	// processes.
	Files, Processes int
}

// Size returns the size of the process. Unreadable values are zero.
func (p *Process) Size() Size {
	size := SizeOf(p.config.Pid)
	others, err := workdir.Processes(p.dir, func(pid int) bool { return pid == p.config.Pid })
	if err == nil {
		size.Processes = len(others)
	}
	return size
}

// SizeOf returns the size of one process without its child processes. Unreadable values are zero.
func SizeOf(pid int) Size {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return Size{}
	}
	status, _ := process.NewStatus()
	files, _ := process.FileDescriptorsLen()
	return Size{Memory: int64(status.RssAnon), Files: files}
}

// Quit lets the process exit by itself, for example to log out, and kills it if it does not. No call
// may be in progress.
func (p *Process) Quit() {
	late := time.AfterFunc(quitTimeout, func() { _, _ = workdir.KillProcesses(p.dir) }) // End reports errors
	defer late.Stop()
	p.client.Kill()
}

// End kills the process and waits for it. It does not ask the process to stop first, since an
// abandoned call may be in progress.
func (p *Process) End() error {
	_, err := workdir.KillProcesses(p.dir)
	p.client.Kill()
	p.once.Do(func() { close(p.ended) })
	if p.door != nil {
		err = errors.Join(err, p.door.close())
	}
	return errors.Join(err, os.RemoveAll(p.dir))
}
