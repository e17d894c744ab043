package landscape

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// The programs, in bin/.
const (
	// MCM has the controllers of MachineDeployments and MachineSets.
	MCM = "machine-controller-manager"
	// Driver has those of Machines, and this project's driver.
	Driver = "machine-controller-manager-provider-iac"
)

// Process is a program that runs.
type Process struct {
	// Log is the file that it logs to, behind what those before it have logged.
	Log string

	name    string
	port    string
	process *os.Process
	ended   chan struct{}
}

// Start starts one of the programs with MCM's own rights. Flags are added to those that it needs.
func (l *Landscape) Start(program string, flags ...string) (*Process, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	arguments := append([]string{
		"--control-kubeconfig", l.kubeconfig("control"), "--target-kubeconfig", l.kubeconfig("target"), "--namespace", Namespace,
		"--port", port, "--leader-elect=false", "--v=3",
	}, flags...)
	p := &Process{Log: filepath.Join(l.dir, program+".log"), name: program, port: port, ended: make(chan struct{})}
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", program, err)
	}
	defer log.Close() //nolint:errcheck // the process has its own handle
	command := exec.Command(l.Lab.Path("bin", program), arguments...)
	command.Stdout, command.Stderr = log, log
	command.Env = []string{"HOME=" + l.dir}
	// A terminal's interrupt is for whoever started the landscape.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w; run 'make build'", program, err)
	}
	p.process = command.Process
	go func() {
		_ = command.Wait() // its log says more
		close(p.ended)
	}()
	return p, nil
}

// Running reports whether it runs.
func (p *Process) Running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// PID returns its process ID.
func (p *Process) PID() int { return p.process.Pid }

// Metric returns the value of one of its metrics, which must have no labels.
func (p *Process) Metric(ctx context.Context, name string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+p.port+"/metrics", nil)
	if err != nil {
		return "", fmt.Errorf("reading the metrics of %s: %w", p.name, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", fmt.Errorf("reading the metrics of %s: %w", p.name, err)
	}
	defer response.Body.Close() //nolint:errcheck // it was read, or not
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if value, found := strings.CutPrefix(lines.Text(), name+" "); found {
			return value, nil
		}
	}
	return "", errors.Join(fmt.Errorf("%s has no metric %s", p.name, name), lines.Err())
}

// Kill ends it at once, as a crash would.
func (p *Process) Kill() error { return p.signal(syscall.SIGKILL) }

// Stop ends it.
func (p *Process) Stop() error { return p.signal(syscall.SIGTERM) }

func (p *Process) signal(signal syscall.Signal) error {
	if !p.Running() {
		return nil
	}
	if err := p.process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("sending %s to %s: %w", signal, p.name, err)
	}
	select {
	case <-p.ended:
		return nil
	case <-time.After(time.Minute):
		return fmt.Errorf("%s did not end within a minute of %s; its log is %s", p.name, signal, p.Log)
	}
}

// freePort returns a port of loopback that nothing listens on.
func freePort() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("finding a free port: %w", err)
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	return port, errors.Join(err, listener.Close())
}
