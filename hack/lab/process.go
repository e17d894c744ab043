package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"time"
)

const readyTimeout = 2 * time.Minute

// process is a program of the operator's that runs in place of its Pod.
type process struct {
	// what it is called in errors.
	what string
	// log is the file that it logs to, behind what those before it have logged.
	log     string
	process *os.Process
	ended   chan struct{}
	state   *os.ProcessState
}

// start starts a program with nothing of this program's environment.
func (p *process) start(binary string, arguments, environment []string) error {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log of %s: %w", p.what, err)
	}
	defer log.Close() //nolint:errcheck // the process has its own handle
	command := exec.Command(binary, arguments...)
	command.Stdout, command.Stderr = log, log
	command.Env = environment
	// A terminal's interrupt is for whoever started the lab; that one then stops the process.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := command.Start(); err != nil {
		return fmt.Errorf("starting %s: %w; run 'make build'", p.what, err)
	}
	p.process, p.ended = command.Process, make(chan struct{})
	go func() {
		_ = command.Wait() // the state has the result
		p.state = command.ProcessState
		close(p.ended)
	}()
	return nil
}

// ready waits until a process that was started is ready, and kills one that is not in time.
func (l *Lab) ready(ctx context.Context, p *process, health string) error {
	err := l.Until(ctx, readyTimeout, p.what+" is ready", func(ctx context.Context) (bool, error) {
		if !p.Running() {
			return true, nil
		}
		return probe(ctx, "http://"+health+"/readyz")
	})
	if err == nil && !p.Running() {
		err = fmt.Errorf("%s has ended: %s; its log is %s", p.what, p.state, p.log)
	}
	if err != nil {
		return errors.Join(err, p.Kill())
	}
	return nil
}

// PID returns the process id.
func (p *process) PID() int { return p.process.Pid }

// Running reports whether the process runs.
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

// State returns what is known of the ended process, nil while it runs.
func (p *process) State() *os.ProcessState {
	if p.Running() {
		return nil
	}
	return p.state
}

// Kill ends the process at once, as a crash would.
func (p *process) Kill() error { return p.signal(syscall.SIGKILL, time.Minute) }

// Stop asks the process to end and waits for it.
func (p *process) Stop(limit time.Duration) error { return p.signal(syscall.SIGTERM, limit) }

func (p *process) signal(signal syscall.Signal, limit time.Duration) error {
	if !p.Running() {
		return nil
	}
	if err := p.process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
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

// freePort returns a port of loopback that nothing listens on.
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

// freeAddress returns an address of loopback that nothing listens on.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("finding a free port: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}
