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

	"github.com/machine-iac/machine-iac-operator/hack/lab"
)

// Programs in bin/.
const (
	// MCM runs the controllers of MachineDeployments and MachineSets.
	MCM = "machine-controller-manager"
	// Driver runs the controller of Machines with this project's driver.
	Driver = "machine-controller-manager-provider-iac"
)

// Process is a running program.
type Process struct {
	// Log is its log file, to which each start appends.
	Log string

	name    string
	port    string
	process *os.Process
	ended   <-chan struct{}
}

// Start starts a program with MCM's rights. It adds flags to the required ones.
func (l *Landscape) Start(program string, flags ...string) (*Process, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	arguments := append([]string{
		"--control-kubeconfig", l.kubeconfig("control"), "--target-kubeconfig", l.kubeconfig("target"),
		"--namespace", Namespace,
		"--port", port, "--leader-elect=false", "--v=3",
	}, flags...)
	p := &Process{Log: filepath.Join(l.dir, program+".log"), name: program, port: port}
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", program, err)
	}
	defer log.Close() //nolint:errcheck // the process has its own handle
	command := exec.Command(l.Lab.Path("bin", program), arguments...)
	command.Stdout, command.Stderr = log, log
	command.Env = []string{"HOME=" + l.dir}
	if p.ended, err = lab.Spawn(command); err != nil {
		return nil, fmt.Errorf("starting %s: %w; run 'make build'", program, err)
	}
	p.process = command.Process
	return p, nil
}

// Running reports whether the process runs.
func (p *Process) Running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// PID returns the process ID.
func (p *Process) PID() int { return p.process.Pid }

// Metric returns the value of a metric without labels.
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

// Kill kills the process, like a crash.
func (p *Process) Kill() error { return p.signal(syscall.SIGKILL) }

// Stop sends SIGTERM and waits for the process to end.
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

func freePort() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("finding a free port: %w", err)
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	return port, errors.Join(err, listener.Close())
}
