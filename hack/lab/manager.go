package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

const readyTimeout = 2 * time.Minute

// Manager is a manager process.
type Manager struct {
	// Metrics is the address of its metrics, without a scheme.
	Metrics string
	// Log is the file that it logs to, behind what those before it have logged.
	Log string
	// WorkDir is its work folder.
	WorkDir string

	lab     *Lab
	as      Instance
	flags   []string
	process *os.Process
	ended   chan struct{}
	state   *os.ProcessState
}

// Instance distinguishes managers that run side by side. The zero value is the one manager that there is.
type Instance struct {
	// Name is part of the names of its log and its work folder.
	Name string
	// Kubeconfig is the file that it reaches the API server by; the operator's own when empty.
	Kubeconfig string
}

// OperatorKubeconfig returns the file with the operator's own kubeconfig. It is there once a manager was started.
func (l *Lab) OperatorKubeconfig() string { return filepath.Join(l.dir, "operator.kubeconfig") }

// StartManager starts bin/machine-controllers with the kubeconfig of the operator's service account and waits until it is ready,
// which is before it leads. Flags are added to those that the lab needs.
func (l *Lab) StartManager(ctx context.Context, flags ...string) (*Manager, error) {
	return l.StartInstance(ctx, Instance{}, flags...)
}

// StartInstance is StartManager for one of several. Only one of them can serve webhooks.
func (l *Lab) StartInstance(ctx context.Context, as Instance, flags ...string) (*Manager, error) {
	if as.Kubeconfig == "" {
		if err := l.WriteOperatorKubeconfig(ctx); err != nil {
			return nil, err
		}
		as.Kubeconfig = l.OperatorKubeconfig()
	}
	return l.launch(ctx, as, flags)
}

// WriteOperatorKubeconfig writes the operator's own kubeconfig, with a token that is good for a day.
func (l *Lab) WriteOperatorKubeconfig(ctx context.Context) error {
	return l.Cluster.ServiceAccountKubeconfig(ctx, Namespace, serviceAccount, l.OperatorKubeconfig())
}

// Restart starts an ended manager again, with its flags and the token that it had, as a kubelet restarts a container. It needs no
// API server.
func (m *Manager) Restart(ctx context.Context) (*Manager, error) {
	if m.Running() {
		return nil, errors.New("restarting the manager: it runs")
	}
	return m.lab.launch(ctx, m.as, m.flags)
}

func (l *Lab) launch(ctx context.Context, as Instance, flags []string) (*Manager, error) {
	health, err := freeAddress()
	if err != nil {
		return nil, err
	}
	metrics, err := freeAddress()
	if err != nil {
		return nil, err
	}
	m := &Manager{
		Metrics: metrics, Log: filepath.Join(l.dir, "logs", as.file("manager")+".log"), WorkDir: filepath.Join(l.dir, as.file("work")),
		lab: l, as: as, flags: flags, ended: make(chan struct{}),
	}
	arguments := append([]string{
		"--kubeconfig", as.Kubeconfig, "--namespace", Namespace, "--work-dir", m.WorkDir,
		"--engine-path", l.Path("bin", "tofu"), "--provider-mirror", l.Path("bin", "mirror"),
		"--health-addr", health, "--metrics-bind-address", metrics, "--webhook-port", l.webhookPort,
	}, l.pulumi()...)
	if err := m.start(l.Path("bin", "machine-controllers"), append(arguments, flags...)); err != nil {
		return nil, err
	}
	err = l.Until(ctx, readyTimeout, "the manager is ready", func(ctx context.Context) (bool, error) {
		if !m.Running() {
			return true, nil
		}
		return probe(ctx, "http://"+health+"/readyz")
	})
	if err == nil && !m.Running() {
		err = fmt.Errorf("the manager has ended: %s; its log is %s", m.state, m.Log)
	}
	if err != nil {
		return nil, errors.Join(err, m.Kill())
	}
	return m, nil
}

// pulumi returns the flags for Pulumi, none where it is not built: the demo has no Machine that runs on it.
func (l *Lab) pulumi() []string {
	program := l.Path("bin", "pulumi")
	if _, err := os.Stat(program); err != nil {
		return nil
	}
	return []string{"--pulumi", program, "--pulumi-plugins", l.Path("bin", "pulumi-plugins")}
}

// searchPath returns PATH for the manager. Without a Pulumi of the repository it is bin alone, so that the manager takes no other.
func (l *Lab) searchPath() string {
	if l.pulumi() == nil {
		return l.Path("bin")
	}
	return os.Getenv("PATH")
}

// file names what is this instance's.
func (i Instance) file(what string) string {
	if i.Name == "" {
		return what
	}
	return what + "-" + i.Name
}

func (m *Manager) start(binary string, arguments []string) error {
	log, err := os.OpenFile(m.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("opening the manager's log: %w", err)
	}
	defer log.Close() //nolint:errcheck // the process has its own handle
	command := exec.Command(binary, arguments...)
	command.Stdout, command.Stderr = log, log
	command.Env = []string{"HOME=" + filepath.Dir(m.WorkDir), "PATH=" + m.lab.searchPath()}
	// A terminal's interrupt is for whoever started the lab; that one then stops the manager.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := command.Start(); err != nil {
		return fmt.Errorf("starting the manager: %w; run 'make build'", err)
	}
	m.process = command.Process
	go func() {
		_ = command.Wait() // the state has the result
		m.state = command.ProcessState
		close(m.ended)
	}()
	return nil
}

// PID returns the process id.
func (m *Manager) PID() int { return m.process.Pid }

// Running reports whether the process runs.
func (m *Manager) Running() bool {
	select {
	case <-m.ended:
		return false
	default:
		return true
	}
}

// Ended is closed when the process has ended.
func (m *Manager) Ended() <-chan struct{} { return m.ended }

// State returns what is known of the ended process, nil while it runs.
func (m *Manager) State() *os.ProcessState {
	if m.Running() {
		return nil
	}
	return m.state
}

// Kill ends the process at once, as a crash would.
func (m *Manager) Kill() error { return m.signal(syscall.SIGKILL, time.Minute) }

// Stop asks the process to end and waits for it.
func (m *Manager) Stop(limit time.Duration) error { return m.signal(syscall.SIGTERM, limit) }

func (m *Manager) signal(signal syscall.Signal, limit time.Duration) error {
	if !m.Running() {
		return nil
	}
	if err := m.process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("sending %s to the manager: %w", signal, err)
	}
	select {
	case <-m.ended:
		return nil
	case <-time.After(limit):
		return fmt.Errorf("the manager did not end within %s of %s; its log is %s", limit, signal, m.Log)
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
