package lab

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
)

// Manager is a manager process.
type Manager struct {
	// Metrics is the address of its metrics, without a scheme.
	Metrics string
	// Log is the file that it logs to, behind what those before it have logged.
	Log string
	// WorkDir is its work folder.
	WorkDir string

	process
	lab *Lab
	as  Instance
	// flags are all that it was started with but for addresses.
	flags []string
}

// Instance distinguishes managers that run side by side. The zero value is the one manager that there is.
type Instance struct {
	// Name is part of the names of its log and its work folder.
	Name string
	// Kubeconfig is the file that it reaches the API server by; the operator's own when empty.
	Kubeconfig string
	// Binary is the program; bin/machine-controllers when empty.
	Binary string
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
	deployed, err := l.deployedArguments(ctx)
	if err != nil {
		return nil, err
	}
	arguments := slices.Concat(deployed, []string{
		"--namespace", Namespace, "--engine-path", l.Path("bin", "tofu"), "--provider-mirror", l.Path("bin", "mirror"), "--webhook-port", l.webhookPort,
	}, l.pulumi(), flags)
	return l.launch(ctx, as, arguments)
}

// WriteOperatorKubeconfig writes the operator's own kubeconfig, with a token that is good for a day.
func (l *Lab) WriteOperatorKubeconfig(ctx context.Context) error {
	return l.Cluster.ServiceAccountKubeconfig(ctx, Namespace, serviceAccount, l.OperatorKubeconfig())
}

// Restart starts an ended manager again, with its flags, some more, and the token that it had, as a kubelet restarts a container. It
// needs no API server.
func (m *Manager) Restart(ctx context.Context, more ...string) (*Manager, error) {
	if m.Running() {
		return nil, errors.New("restarting the manager: it runs")
	}
	return m.lab.launch(ctx, m.as, slices.Concat(m.flags, more))
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
		process: process{what: "the manager"}, lab: l, as: as, flags: flags,
	}
	m.log = m.Log
	binary := as.Binary
	if binary == "" {
		binary = l.Path("bin", "machine-controllers")
	}
	// Flags may name another kubeconfig, since the last one counts.
	arguments := slices.Concat([]string{"--kubeconfig", as.Kubeconfig}, flags, []string{"--work-dir", m.WorkDir, "--health-addr", health, "--metrics-bind-address", metrics})
	environment := []string{"HOME=" + l.dir, "PATH=" + l.searchPath()}
	if err := m.start(binary, arguments, environment); err != nil {
		return nil, err
	}
	if err := l.ready(ctx, &m.process, health); err != nil {
		return nil, err
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
