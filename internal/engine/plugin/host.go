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
	// engineSocket is where a host finds an engine, in its folder: whichever CLI has the host at the time.
	engineSocket = "engine"
	// programDir is the run's program, in the folder of the host that runs it.
	programDir = "program"
	// maxPrinted bounds what is passed on of what a host prints during a call, in bytes. The rest is dropped.
	maxPrinted = 16 << 10
	// logTimeout bounds a message to the CLI, which takes it at once.
	logTimeout = 10 * time.Second
)

// host is a host of YAML programs that runs. It runs one program at a time: where it is, is a part of its state.
type host struct {
	*process
	// printed is what it prints for people: a CLI that starts its host reads that itself.
	printed *os.File
	front   *grpc.Server
	served  chan struct{}

	mu sync.Mutex
	// engine is that of the CLI that has the host, nil where none has.
	engine *grpc.ClientConn
}

var _ provider.Running = &host{}

// hostStarter returns what starts hosts for a pool. They read what read names, and write into their folders.
func hostStarter(confined *sandbox.Sandbox, read []string) provider.Starter {
	return func(dir, file string, environment map[string]string) (provider.Running, error) {
		h := &host{served: make(chan struct{})}
		err := h.prepare(dir)
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

// prepare makes what the process is given.
func (h *host) prepare(dir string) (err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("starting a host of programs: %w", err)
	}
	if h.printed, err = unnamed(dir); err != nil {
		return fmt.Errorf("starting a host of programs: %w", err)
	}
	listener, err := net.Listen("unix", filepath.Join(dir, engineSocket))
	if err != nil {
		return fmt.Errorf("serving a host of programs: %w", err)
	}
	h.front = newServer(h.forward)
	go func() {
		defer close(h.served)
		_ = h.front.Serve(listener) // it is stopped
	}()
	return nil
}

// unnamed returns a file that nobody finds, and that ends with the processes that have it. What is written goes to its end.
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

// attach lets the host reach another engine, or none.
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
		return nil, status.Error(codes.FailedPrecondition, "no CLI has the host of programs")
	}
	return h.engine, nil
}

const engineService = "/pulumirpc.Engine/"

// forward passes on what the host has to say to an engine.
func (h *host) forward(_ any, stream grpc.ServerStream) error {
	return respond(stream, func(ctx context.Context, method string, message []byte) ([]byte, error) {
		if !strings.HasPrefix(method, engineService) {
			return nil, status.Errorf(codes.Unimplemented, "%s is no method of an engine", method)
		}
		engine, err := h.attached()
		if err != nil {
			return nil, err
		}
		return invoke(ctx, engine, method, message)
	})
}

// say has the CLI show what the host has printed since the last time.
func (h *host) say(ctx context.Context) error {
	content := make([]byte, maxPrinted)
	n, _ := h.printed.ReadAt(content, 0) // it ends sooner
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

// leave removes what a run has left in the host's folder.
func (h *host) leave() error {
	return errors.Join(h.attach(nil), h.printed.Truncate(0), os.RemoveAll(filepath.Join(h.dir, programDir)))
}

// dialEngine connects to the engine of a CLI, which is on this machine.
func dialEngine(address string) (*grpc.ClientConn, error) {
	if name, _, err := net.SplitHostPort(address); err != nil || !net.ParseIP(name).IsLoopback() {
		return nil, status.Errorf(codes.InvalidArgument, "the engine's address %.100q is not one of the loopback interface", address)
	}
	return dial(address)
}
