package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/machine-iac/machine-iac-operator/hack/devcluster/cluster"
)

// Manager is a manager process.
type Manager struct {
	// Metrics is the host and port of its metrics.
	Metrics string
	WorkDir string

	Process
	lab *Lab
	as  Instance
	// flags are its flags except addresses.
	flags []string
}

// Instance distinguishes managers that run side by side. The zero value is the default manager.
type Instance struct {
	// Name is part of the names of its log and work folder.
	Name string
	// Kubeconfig is its kubeconfig, by default the operator's.
	Kubeconfig string
	// Binary is the program, by default bin/machine-controllers.
	Binary string
	// PodNamespace makes it believe that it runs in a Pod of this namespace, unless empty.
	PodNamespace string
}

// OperatorKubeconfig returns the path of the operator's kubeconfig. The file exists once a manager was started.
func (l *Lab) OperatorKubeconfig() string { return filepath.Join(l.dir, "operator.kubeconfig") }

// StartManager starts bin/machine-controllers as the operator's service account and waits until it is ready, which is
// before it leads. It adds flags to the lab's own.
func (l *Lab) StartManager(ctx context.Context, flags ...string) (*Manager, error) {
	return l.StartInstance(ctx, Instance{}, flags...)
}

// StartInstance is StartManager for one of several instances. Only one of them can serve webhooks.
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
		"--namespace", Namespace, "--engine-path", l.Path("bin", "tofu"), "--provider-mirror", l.Path("bin", "mirror"),
		"--webhook-port", l.webhookPort,
	}, l.pulumi(), flags)
	return l.launch(ctx, as, arguments)
}

// WriteOperatorKubeconfig writes the operator's kubeconfig, with a token valid for a day.
func (l *Lab) WriteOperatorKubeconfig(ctx context.Context) error {
	return cluster.ServiceAccountKubeconfig(ctx, l.kubeconfig, Namespace, serviceAccount, l.OperatorKubeconfig())
}

// During runs a function, and cancels it when the manager ends, unless 'make run' replaces the manager. It then returns
// an error that names the log.
func (m *Manager) During(ctx context.Context, run func(context.Context) error) error {
	watched, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-m.Ended():
			if !m.replaced() {
				cancel(fmt.Errorf("%s has ended: %s; its log is %s", m.What, m.State(), m.Log))
			}
		case <-watched.Done():
		}
	}()
	err := run(watched)
	if ctx.Err() == nil && watched.Err() != nil {
		return context.Cause(watched)
	}
	return err
}

// Restart restarts an ended manager with its flags, more flags and its old token, as a kubelet restarts a container. It
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
		Metrics: metrics, WorkDir: filepath.Join(l.dir, as.file("work")), lab: l, as: as, flags: flags,
		Process: Process{What: "the manager", Log: filepath.Join(l.dir, "logs", as.file("manager")+".log")},
	}
	binary := as.Binary
	if binary == "" {
		binary = l.Path("bin", "machine-controllers")
	}
	// The last flag wins, so flags may name another kubeconfig.
	arguments := slices.Concat([]string{"--kubeconfig", as.Kubeconfig}, flags,
		[]string{"--work-dir", m.WorkDir, "--health-addr", health, "--metrics-bind-address", metrics})
	environment := []string{"HOME=" + l.dir, "PATH=" + l.searchPath()}
	if as.PodNamespace != "" {
		environment = append(environment, "POD_NAMESPACE="+as.PodNamespace)
	}
	if err := m.Start(binary, arguments, environment); err != nil {
		return nil, err
	}
	if err := l.ready(ctx, &m.Process, health); err != nil {
		return nil, err
	}
	return m, nil
}

// pulumi returns the flags for Pulumi, or none if it is not built: the demo has no Machines that need it.
func (l *Lab) pulumi() []string {
	program := l.Path("bin", "pulumi")
	if _, err := os.Stat(program); err != nil {
		return nil
	}
	return []string{"--pulumi", program, "--pulumi-plugins", l.Path("bin", "pulumi-plugins")}
}

// searchPath returns the manager's PATH. If the repository has not built Pulumi, PATH is bin alone, so that the manager
// finds no other.
func (l *Lab) searchPath() string {
	if l.pulumi() == nil {
		return l.Path("bin")
	}
	return os.Getenv("PATH")
}

func (i Instance) file(what string) string {
	if i.Name == "" {
		return what
	}
	return what + "-" + i.Name
}
