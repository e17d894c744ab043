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
	"syscall"
	"time"
)

const readyTimeout = 2 * time.Minute

// process is a program that runs in place of its Pod.
type process struct {
	// what names it in errors.
	what string
	// log is its log file, to which each start appends.
	log     string
	command *exec.Cmd
	ended   <-chan struct{}
}

// start starts a program with only the given environment.
func (p *process) start(binary string, arguments, environment []string) error {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log of %s: %w", p.what, err)
	}
	defer log.Close() //nolint:errcheck // the process has its own handle
	command := exec.Command(binary, arguments...)
	command.Stdout, command.Stderr = log, log
	command.Env = environment
	if p.ended, err = Spawn(command); err != nil {
		return fmt.Errorf("starting %s: %w; run 'make build'", p.what, err)
	}
	p.command = command
	return nil
}

// Spawn starts a command and returns a channel that is closed when it ends. The command has its own process group, so
// that only this program gets a terminal's interrupt, and then stops it. On Linux the command is killed when this
// program dies; SIGTERM would reach it repeatedly, as this program's threads die one by one.
func Spawn(command *exec.Cmd) (<-chan struct{}, error) {
	command.SysProcAttr = childAttributes()
	command.SysProcAttr.Setpgid = true
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
func (l *Lab) ready(ctx context.Context, p *process, health string) error {
	err := l.Until(ctx, readyTimeout, p.what+" is ready", func(ctx context.Context) (bool, error) {
		if !p.Running() {
			return true, nil
		}
		return probe(ctx, "http://"+health+"/readyz")
	})
	if err == nil && !p.Running() {
		err = fmt.Errorf("%s has ended: %s; its log is %s", p.what, p.State(), p.log)
	}
	if err != nil {
		return errors.Join(err, p.Kill())
	}
	return nil
}

// PID returns the process id.
func (p *process) PID() int { return p.command.Process.Pid }

func (p *process) Running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// Ended is closed when the process has ended.
func (p *process) Ended() <-chan struct{} { return p.ended }

// State returns the state of the ended process, or nil while it runs.
func (p *process) State() *os.ProcessState {
	if p.Running() {
		return nil
	}
	return p.command.ProcessState
}

// Kill kills the process, like a crash.
func (p *process) Kill() error { return p.signal(syscall.SIGKILL, time.Minute) }

// Stop sends SIGTERM and waits for the process to end.
func (p *process) Stop(limit time.Duration) error { return p.signal(syscall.SIGTERM, limit) }

func (p *process) signal(signal syscall.Signal, limit time.Duration) error {
	if !p.Running() {
		return nil
	}
	if err := p.command.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("sending %s to %s: %w", signal, p.what, err)
	}
	select {
	case <-p.ended:
		return nil
	case <-time.After(limit):
		return fmt.Errorf("%s did not end within %s of %s; its log is %s", p.what, limit, signal, p.log)
	}
}

func probe(ctx context.Context, address string) (bool, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return false, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false, err
	}
	return response.StatusCode == http.StatusOK, response.Body.Close()
}

func freePort() (string, error) {
	address, err := freeAddress()
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("finding a free port: %w", err)
	}
	return port, nil
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("finding a free port: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}
