package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/machine-iac/machine-iac-operator/internal/engine/workdir"
)

const readyTimeout = 2 * time.Minute

// Process is a program that runs in place of its Pod.
type Process struct {
	// What names it in errors.
	What string
	// Log is its log file, to which each start appends.
	Log string

	command *exec.Cmd
	ended   <-chan struct{}
}

// Start starts a program with only the given environment.
func (p *Process) Start(binary string, arguments, environment []string) error {
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log of %s: %w", p.What, err)
	}
	defer log.Close() //nolint:errcheck // the process has its own handle
	command := exec.Command(binary, arguments...)
	command.Stdout, command.Stderr = log, log
	command.Env = environment
	if p.ended, err = Spawn(command); err != nil {
		return fmt.Errorf("starting %s: %w; run 'make build'", p.What, err)
	}
	p.command = command
	return nil
}

// Spawn starts a command and returns a channel that is closed when it ends. The command has its own process group, so
// that only this program gets a terminal's interrupt, and then stops it. On Linux the command is killed when this
// program dies; SIGTERM would reach it repeatedly, as this program's threads die one by one.
func Spawn(command *exec.Cmd) (<-chan struct{}, error) {
	command.SysProcAttr = workdir.ChildAttributes()
	started, ended := make(chan error), make(chan struct{})
	go func() {
		// The kernel sends the signal when the thread that started the command ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := command.Start()
		started <- err
		if err == nil {
			_ = command.Wait() // ProcessState has the result
			close(ended)
		}
	}()
	return ended, <-started
}

// ready waits until a started process is ready, and kills it if it is late.
func (l *Lab) ready(ctx context.Context, p *Process, health string) error {
	err := l.Until(ctx, readyTimeout, p.What+" is ready", func(ctx context.Context) (bool, error) {
		if !p.Running() {
			return true, nil
		}
		code, _, err := Get(ctx, "http://"+health+"/readyz", "")
		return code == http.StatusOK, err
	})
	if err == nil && !p.Running() {
		err = fmt.Errorf("%s has ended: %s; its log is %s", p.What, p.State(), p.Log)
	}
	if err != nil {
		return errors.Join(err, p.Kill())
	}
	return nil
}

// PID returns the process id.
func (p *Process) PID() int { return p.command.Process.Pid }

// Running reports whether the process runs.
func (p *Process) Running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// Ended is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// State returns the state of the ended process, or nil while it runs.
func (p *Process) State() *os.ProcessState {
	if p.Running() {
		return nil
	}
	return p.command.ProcessState
}

// Kill kills the process, like a crash.
func (p *Process) Kill() error { return p.signal(syscall.SIGKILL, time.Minute) }

// Stop sends SIGTERM and waits for the process to end.
func (p *Process) Stop(limit time.Duration) error { return p.signal(syscall.SIGTERM, limit) }

func (p *Process) signal(signal syscall.Signal, limit time.Duration) error {
	if !p.Running() {
		return nil
	}
	if err := p.command.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("sending %s to %s: %w", signal, p.What, err)
	}
	select {
	case <-p.ended:
		return nil
	case <-time.After(limit):
		return fmt.Errorf("%s did not end within %s of %s; its log is %s", p.What, limit, signal, p.Log)
	}
}

// FreePort returns a port of 127.0.0.1 that nothing listens on.
func FreePort() (string, error) {
	address, err := freeAddress()
	_, port, _ := strings.Cut(address, ":")
	return port, err
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("finding a free port: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}
