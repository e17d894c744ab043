package cluster

import (
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

// Options say where a cluster lives and how patient it is. The zero value is usable.
type Options struct {
	// Dir is the data folder; ".dev" when empty. It is made when it is missing.
	Dir string
	// Bin is the folder with the binaries and with KWOK's stages; "bin" when empty.
	Bin string
	// Timeout bounds each operation as a whole; two minutes when zero.
	Timeout time.Duration
	// StopGrace is how long a component may take to stop before it is killed; 15 seconds when zero.
	StopGrace time.Duration
	// PodDeleteDelay is how long a deleted Pod stays before KWOK removes it; three seconds when zero.
	PodDeleteDelay time.Duration
	// NodeMonitorGrace is how long a Node may miss its heartbeats before kube-controller-manager calls its Ready condition Unknown; two
	// minutes when zero, so that Nodes outlast a restart of the API server or of KWOK that someone takes a while for, or NodeLease where that is longer.
	NodeMonitorGrace time.Duration
	// NodeLease is how long the leases of KWOK's Nodes last, in whole seconds; 40 seconds when zero, as those of kubelets. They are renewed four times as often, which
	// takes the API server more than all else where there are thousands.
	NodeLease time.Duration
	// Audit are the users whose requests the API server writes to [Cluster.AuditLog]; takes effect when it starts.
	Audit []string
}

func (o Options) withDefaults() Options {
	if o.Dir == "" {
		o.Dir = ".dev"
	}
	if o.Bin == "" {
		o.Bin = "bin"
	}
	if o.Timeout == 0 {
		o.Timeout = 2 * time.Minute
	}
	if o.StopGrace == 0 {
		o.StopGrace = 15 * time.Second
	}
	if o.PodDeleteDelay == 0 {
		o.PodDeleteDelay = 3 * time.Second
	}
	if o.NodeLease == 0 {
		o.NodeLease = 40 * time.Second
	}
	if o.NodeMonitorGrace == 0 {
		o.NodeMonitorGrace = max(2*time.Minute, o.NodeLease)
	}
	return o
}

// Cluster is a handle on the cluster of one data folder. It may be used from several goroutines, and several programs may hold
// one for the same folder: whatever changes the folder waits for the others.
type Cluster struct {
	options Options
	layout  layout
	ports   portSource
	now     func() time.Time

	mu     sync.Mutex
	server string
	// routes are where Services are that do not arrive where the others do, by their addresses in the cluster.
	routes map[string]string
}

// New opens the cluster of a data folder. It starts nothing, and the folder need not exist yet.
func New(options Options) (*Cluster, error) {
	if runtime.GOOS != "linux" {
		return nil, fmt.Errorf("opening the cluster: it needs Linux, this is %s; use a Linux machine or container", runtime.GOOS)
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
	c := &Cluster{options: options, layout: layout{dir: dir, bin: bin}, ports: systemPorts(), now: time.Now}
	remembered, err := loadState(c.layout.state())
	if err != nil {
		return nil, err
	}
	c.remember(remembered)
	return c, nil
}

// Dir returns the absolute path of the data folder.
func (c *Cluster) Dir() string { return c.layout.dir }

// remember keeps what Server returns.
func (c *Cluster) remember(current *state) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server = ""
	if current.Ports[portAPIServer] != 0 {
		c.server = serverURL(current.Ports)
	}
}

// Stop stops one component, with SIGTERM and after the grace period with SIGKILL. A component that does not run is fine.
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

// Start starts one component on the port that it had and waits until it is ready. A component that runs is fine. The cluster
// must have been up before.
func (c *Cluster) Start(ctx context.Context, component Component) error {
	if _, err := ParseComponent(string(component)); err != nil {
		return err
	}
	neverUp := fmt.Errorf("starting %s: the cluster in %s was never up; run 'devcluster up' first", component, c.layout.dir)
	if !c.wasUp() {
		return neverUp
	}
	return c.change(ctx, func(ctx context.Context, current *state) error {
		for _, name := range portsOf(component) {
			port := current.Ports[name]
			if port == 0 {
				return neverUp
			}
			if !current.Processes[component].alive() && !c.ports.free(port) {
				return fmt.Errorf("starting %s: another program listens on port %d; end it, or run 'devcluster up' to use another port",
					component, port)
			}
		}
		_, err := c.ensure(ctx, current, component)
		return err
	})
}

// Down stops all components, the last one started first. The data stays.
func (c *Cluster) Down(ctx context.Context) error {
	if !c.wasUp() {
		return nil
	}
	return c.change(ctx, c.endEverything)
}

// Purge stops all components and removes the data folder. It refuses to remove a folder that holds no cluster.
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
		*current = *newState()
		return nil
	})
}

// wasUp reports whether the data folder holds a cluster, running or not.
func (c *Cluster) wasUp() bool {
	_, err := os.Stat(c.layout.state())
	return err == nil
}

// change runs an operation on the state alone, within the timeout.
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
	defer c.remember(current)
	return operation(ctx, current)
}

func (c *Cluster) endEverything(ctx context.Context, current *state) error {
	return c.endAll(ctx, current, func(Component) bool { return true })
}

// endAll stops the chosen components in reverse order. One that can't be stopped does not keep the others running.
func (c *Cluster) endAll(ctx context.Context, current *state, chosen func(Component) bool) error {
	var failed []error
	for _, component := range slices.Backward(Components()) {
		if chosen(component) {
			failed = append(failed, c.end(ctx, current, component))
		}
	}
	return errors.Join(failed...)
}

// end stops one component and forgets its process.
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
