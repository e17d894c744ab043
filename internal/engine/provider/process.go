package provider

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/terraform-exec/tfexec"
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
	// startTimeout bounds the wait for a provider to be ready.
	startTimeout = 30 * time.Second
	// healthService is the name by which go-plugin serves the health of a plugin.
	healthService = "plugin"
)

// Process is a provider plugin that runs. It serves one run at a time: an interrupt cancels every call in its process, and its
// configuration is global to it.
type Process struct {
	dir    string
	client *plugin.Client
	config tfexec.ReattachConfig
	ended  chan struct{} // closed once it is to end
	once   sync.Once
}

// Start starts the plugin in a folder of its own, which has its socket and is all that it writes into, with nothing but the environment. A
// sandbox that is not nil confines it.
func Start(dir, file string, environment map[string]string, confined *sandbox.Sandbox) (*Process, error) {
	if err := confined.Check(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("starting the provider %s: %w", filepath.Base(file), err)
	}
	client := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  handshake,
		VersionedPlugins: map[int]plugin.PluginSet{5: {}, 6: {}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		Cmd:              command(dir, file, environment, confined),
		SkipHostEnv:      true,
		StartTimeout:     startTimeout,
		Logger:           hclog.NewNullLogger(),
	})
	p := &Process{dir: dir, client: client, ended: make(chan struct{})}
	if err := p.start(); err != nil {
		// its text may repeat what the plugin wrote
		return nil, errors.Join(fmt.Errorf("starting the provider %s failed", filepath.Base(file)), p.End())
	}
	address := client.ReattachConfig()
	p.config = tfexec.ReattachConfig{
		Protocol:        string(address.Protocol),
		ProtocolVersion: client.NegotiatedVersion(),
		Pid:             address.Pid,
		Test:            true, // the engine leaves it running
		Addr:            tfexec.ReattachConfigAddr{Network: address.Addr.Network(), String: address.Addr.String()},
	}
	return p, nil
}

// command is how every plugin is executed that an engine does not start itself.
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

// start starts the plugin on a thread that stays until the plugin's end: the plugin dies with the thread that starts it.
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

// Reattach is what an engine needs to use it.
func (p *Process) Reattach() tfexec.ReattachConfig { return p.config }

// Exited reports whether the process is gone.
func (p *Process) Exited() bool { return p.client.Exited() }

// Responds returns an error unless the process responds to a question about its health before ctx ends. One that is stopped or out of threads
// does not.
func (p *Process) Responds(ctx context.Context) error {
	connection, err := grpc.NewClient(p.config.Addr.Network+":"+p.config.Addr.String, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("reaching the provider: %w", err)
	}
	defer func() { _ = connection.Close() }()
	_, err = grpc_health_v1.NewHealthClient(connection).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: healthService})
	switch status.Code(err) {
	case codes.OK, codes.Unimplemented, codes.NotFound:
		return nil
	default:
		return fmt.Errorf("the provider does not respond: %w", err)
	}
}

// Size is what a process takes of the machine.
type Size struct {
	// Memory is what is resident and its own, in bytes: what it shares with the file it is executed from can be read again.
	Memory int64
	// Files is how many files and connections are open, Processes how many processes it has started that still run.
	Files, Processes int
}

// Size returns what the process takes; what cannot be read is zero.
func (p *Process) Size() Size {
	size := SizeOf(p.config.Pid)
	others, err := workdir.Processes(p.dir, func(pid int) bool { return pid == p.config.Pid })
	if err == nil {
		size.Processes = len(others)
	}
	return size
}

// SizeOf returns what one process takes, without those that it has started; what cannot be read is zero.
func SizeOf(pid int) Size {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	size := Size{Memory: ownMemory(filepath.Join(proc, "status"))}
	if files, err := os.ReadDir(filepath.Join(proc, "fd")); err == nil {
		size.Files = len(files)
	}
	return size
}

// End kills the process and waits for it. It is not asked to stop first: it may be in the middle of a call that nothing waits for.
func (p *Process) End() error {
	_, err := workdir.KillProcesses(p.dir)
	p.client.Kill()
	p.once.Do(func() { close(p.ended) })
	return errors.Join(err, os.RemoveAll(p.dir))
}
