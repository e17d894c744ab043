package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"
)

// Options configure a cluster. The zero value is usable.
type Options struct {
	// Dir is the data folder, by default ".dev". It is created if missing.
	Dir string
	// Bin is the folder with the binaries and KWOK's stages, by default "bin".
	Bin string
	// Timeout bounds each operation, by default to two minutes.
	Timeout time.Duration
	// StopGrace is how long a component may take to stop before it is killed, by default 15 seconds.
	StopGrace time.Duration
	// PodDeleteDelay is how long KWOK keeps a deleted Pod, by default three seconds.
	PodDeleteDelay time.Duration
	// NodeMonitorGrace is how long a Node may miss heartbeats before kube-controller-manager sets its Ready condition
	// to Unknown. The default is two minutes, or NodeLease if longer, so that Nodes survive a slow restart of the API
	// server or KWOK.
	NodeMonitorGrace time.Duration
	// NodeLease is the duration of Nodes' leases in whole seconds, by default 40 as for kubelets. KWOK renews them four
	// times as often, which dominates the API server's load with thousands of Nodes.
	NodeLease time.Duration
	// Audit are the users whose requests the API server logs to [Cluster.AuditLog], from its next start.
	Audit []string
}

func (o Options) withDefaults() Options {
	o.Dir, o.Bin = cmp.Or(o.Dir, ".dev"), cmp.Or(o.Bin, "bin")
	o.Timeout = cmp.Or(o.Timeout, 2*time.Minute)
	o.StopGrace = cmp.Or(o.StopGrace, 15*time.Second)
	o.PodDeleteDelay = cmp.Or(o.PodDeleteDelay, 3*time.Second)
	o.NodeLease = cmp.Or(o.NodeLease, 40*time.Second)
	o.NodeMonitorGrace = cmp.Or(o.NodeMonitorGrace, max(2*time.Minute, o.NodeLease))
	return o
}

// Cluster is a handle on the cluster in a data folder. It is safe for concurrent use, also by several programs with the
// same folder: operations that change the folder are serialized by a lock.
type Cluster struct {
	options Options
	layout  layout
	ports   portSource
	now     func() time.Time

	mu sync.Mutex
	// routes overrides the targets of Services, by their addresses in the cluster.
	routes map[string]string
}

// New opens the cluster of a data folder. It starts nothing, and the folder need not exist yet.
func New(options Options) (*Cluster, error) {
	if runtime.GOOS != "linux" {
		return nil, fmt.Errorf("opening the cluster: it needs Linux, this is %s; use a Linux machine or container",
			runtime.GOOS)
	}
	options = options.withDefaults()
	dir, err := filepath.Abs(options.Dir)
	if err != nil {
		return nil, fmt.Errorf("finding the data folder: %w", err)
	}
	bin, err := filepath.Abs(options.Bin)
	if err != nil {
		return nil, fmt.Errorf("finding the folder of the binaries: %w", err)
	}
	return &Cluster{options: options, layout: layout{dir: dir, bin: bin}, ports: systemPorts(), now: time.Now}, nil
}

// Dir returns the absolute path of the data folder.
func (c *Cluster) Dir() string { return c.layout.dir }

// Stop stops one component with SIGTERM or, after the grace period, SIGKILL. Stopping a stopped component is a no-op.
func (c *Cluster) Stop(ctx context.Context, component Component) error {
	if _, err := ParseComponent(string(component)); err != nil {
		return err
	}
	if !c.wasUp() {
		return nil
	}
	return c.change(ctx, func(ctx context.Context, current *state) error {
		return c.end(ctx, current, component)
	})
}

// Start starts one component on its previous port and waits until it is ready. Starting a running component is a no-op.
// The cluster must have been up before.
func (c *Cluster) Start(ctx context.Context, component Component) error {
	if _, err := ParseComponent(string(component)); err != nil {
		return err
	}
	neverUp := fmt.Errorf("starting %s: the cluster in %s was never up; run 'devcluster up' first", component,
		c.layout.dir)
	if !c.wasUp() {
		return neverUp
	}
	return c.change(ctx, func(ctx context.Context, current *state) error {
		for _, name := range portsOf[component] {
			port := current.Ports[name]
			if port == 0 {
				return neverUp
			}
			if !current.Processes[component].alive() && !c.ports.free(port) {
				return fmt.Errorf("starting %s: another program listens on port %d; end it, or run 'devcluster up' "+
					"to use another port",
					component, port)
			}
		}
		_, err := c.ensure(ctx, current, component)
		return err
	})
}

// Down stops all components in reverse order. The data stays.
func (c *Cluster) Down(ctx context.Context) error {
	if !c.wasUp() {
		return nil
	}
	return c.change(ctx, c.endEverything)
}

// Purge stops all components and removes the data folder. It refuses to remove a folder without a cluster.
func (c *Cluster) Purge(ctx context.Context) error {
	if err := c.layout.checkOwn(); err != nil {
		return err
	}
	if _, err := os.Stat(c.layout.dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return c.change(ctx, func(ctx context.Context, current *state) error {
		if err := c.endEverything(ctx, current); err != nil {
			return err
		}
		if err := os.RemoveAll(c.layout.dir); err != nil {
			return fmt.Errorf("removing the data folder: %w", err)
		}
		return nil
	})
}

// wasUp reports whether the data folder holds a cluster, running or not.
func (c *Cluster) wasUp() bool {
	_, err := os.Stat(c.layout.state())
	return err == nil
}

func (c *Cluster) change(ctx context.Context, operation func(context.Context, *state) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	unlock, err := acquireLock(ctx, c.layout.lock())
	if err != nil {
		return err
	}
	defer unlock()
	current, err := loadState(c.layout.state())
	if err != nil {
		return err
	}
	return operation(ctx, current)
}

// endEverything stops all components in reverse order. If one cannot be stopped, the others still are.
func (c *Cluster) endEverything(ctx context.Context, current *state) error {
	var failed []error
	for _, component := range slices.Backward(Components()) {
		failed = append(failed, c.end(ctx, current, component))
	}
	return errors.Join(failed...)
}

func (c *Cluster) end(ctx context.Context, current *state, component Component) error {
	running, known := current.Processes[component]
	if !known {
		return nil
	}
	if err := running.end(ctx, c.options.StopGrace); err != nil {
		return fmt.Errorf("stopping %s: %w", component, err)
	}
	delete(current.Processes, component)
	return current.save(c.layout.state())
}
