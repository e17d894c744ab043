package plugin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/machine-iac/machine-iac-operator/internal/engine/provider"
	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
)

const (
	// engineSocket is the socket in a host's folder where it reaches the engine of the CLI that
	// currently uses the host.
	engineSocket = "engine"
	// programDir is the run's program, in the folder of the host that runs it.
	programDir = "program"
	// maxPrinted limits how many bytes of a host's output during a call are passed on. The rest is
	// dropped.
	maxPrinted = 16 << 10
	// logTimeout limits a log message to the CLI, which accepts it immediately.
	logTimeout = 10 * time.Second
)

// host is a running host of YAML programs. It runs one program at a time: its working folder is
// part of its state.
type host struct {
	*process
	// printed is the host's output for people. A CLI that starts its own host reads that output
	// itself.
	printed *os.File
	front   *grpc.Server
	served  chan struct{}

	mu sync.Mutex
	// engine is the engine of the CLI that uses the host, or nil.
	engine *grpc.ClientConn
}

var _ provider.Running = &host{}

// hostStarter starts hosts for a pool. They can read what read names, and write to their folders.
func hostStarter(confined *sandbox.Sandbox, read []string) provider.Starter {
	return func(dir, file string, environment map[string]string) (provider.Running, error) {
		h := &host{served: make(chan struct{})}
		err := h.prepare(dir, confined.Admits(dir))
		if err == nil {
			h.process, err = start(dir, file, environment, confined, read, func(command *exec.Cmd) {
				command.Args, command.Stderr = append(command.Args, "unix://"+filepath.Join(dir, engineSocket)), h.printed
			})
		}
		if err != nil {
			return nil, errors.Join(err, h.End(), os.RemoveAll(dir))
		}
		return h, nil
	}
}

// prepare creates what the process needs. Its engine serves the admitted processes.
func (h *host) prepare(dir string, admits func(pid int) bool) (err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("starting a host of programs: %w", err)
	}
	if h.printed, err = unnamed(dir); err != nil {
		return fmt.Errorf("starting a host of programs: %w", err)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, engineSocket), Net: "unix"})
	if err != nil {
		return fmt.Errorf("serving a host of programs: %w", err)
	}
	h.front = newServer(h.forward)
	go func() {
		defer close(h.served)
		_ = h.front.Serve(admitting{listener, admits}) // it was stopped
	}()
	return nil
}

// admitting accepts only connections of admitted processes.
type admitting struct {
	*net.UnixListener
	admits func(pid int) bool
}

// Accept implements net.Listener.
func (a admitting) Accept() (net.Conn, error) {
	for {
		from, err := a.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if pid, err := sandbox.Peer(from); err == nil && a.admits(pid) {
			return from, nil
		}
		_ = from.Close() // it was only accepted
	}
}

// unnamed returns a file without a name, which disappears with the processes that have it open.
// Writes append.
func unnamed(dir string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(dir, "printed"), os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// End implements provider.Running.
func (h *host) End() error {
	var errs []error
	if h.process != nil {
		errs = append(errs, h.process.End())
	}
	if h.front != nil {
		h.front.Stop()
		<-h.served
	}
	errs = append(errs, h.attach(nil))
	if h.printed != nil {
		if err := h.printed.Close(); !errors.Is(err, os.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// attach connects the host to another engine, or to none.
func (h *host) attach(engine *grpc.ClientConn) error {
	h.mu.Lock()
	earlier := h.engine
	h.engine = engine
	h.mu.Unlock()
	if earlier == nil {
		return nil
	}
	return earlier.Close()
}

func (h *host) attached() (*grpc.ClientConn, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.engine == nil {
		return nil, status.Error(codes.FailedPrecondition, "no CLI uses the host of programs")
	}
	return h.engine, nil
}

const engineService = "/pulumirpc.Engine/"

// forward forwards a host's call to the engine.
func (h *host) forward(_ any, stream grpc.ServerStream) error {
	return respond(stream, func(ctx context.Context, method string, message []byte) ([]byte, error) {
		if !strings.HasPrefix(method, engineService) {
			return nil, status.Errorf(codes.Unimplemented, "%s is not a method of an engine", method)
		}
		engine, err := h.attached()
		if err != nil {
			return nil, err
		}
		return invoke(ctx, engine, method, message)
	})
}

// say makes the CLI show what the host has printed since the last time.
func (h *host) say(ctx context.Context) error {
	content := make([]byte, maxPrinted)
	n, _ := h.printed.ReadAt(content, 0) // ends early
	if n == 0 {
		return nil
	}
	engine, err := h.attached()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, logTimeout)
	defer cancel()
	for line := range strings.Lines(string(content[:n])) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		message := &pulumirpc.LogRequest{Severity: pulumirpc.LogSeverity_INFO, Message: strings.ToValidUTF8(line, "?")}
		if _, err := pulumirpc.NewEngineClient(engine).Log(ctx, message); err != nil {
			return err
		}
	}
	return h.printed.Truncate(0)
}

// leave removes a run's data from the host's folder.
func (h *host) leave() error {
	return errors.Join(h.attach(nil), h.printed.Truncate(0), os.RemoveAll(filepath.Join(h.dir, programDir)))
}

// dialEngine connects to the engine of a CLI on this machine.
func dialEngine(address string) (*grpc.ClientConn, error) {
	if name, _, err := net.SplitHostPort(address); err != nil || !net.ParseIP(name).IsLoopback() {
		return nil, status.Errorf(codes.InvalidArgument, "the engine's address %.100q is not on the loopback interface",
			address)
	}
	return dial(address)
}
