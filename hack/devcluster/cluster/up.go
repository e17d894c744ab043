package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// Up starts all components that do not run, waits until they are ready, and prints each step to progress unless it is
// nil. It is idempotent: it restarts running components only if certificates or ports changed. After an error, the
// components that started keep running; fix the cause and call Up again, or call Down.
func (c *Cluster) Up(ctx context.Context, progress io.Writer) error {
	if progress == nil {
		progress = io.Discard
	}
	if err := c.layout.checkBinaries(); err != nil {
		return err
	}
	if err := c.layout.checkOwn(); err != nil {
		return err
	}
	if err := c.layout.makeFolders(); err != nil {
		return err
	}
	return c.change(ctx, func(ctx context.Context, current *state) error {
		begun := c.now()
		if err := c.prepare(ctx, current); err != nil {
			return err
		}
		c.report(progress, "configuration", begun, "in "+c.layout.dir)
		for _, component := range Components() {
			begun := c.now()
			before := current.Processes[component]
			running, err := c.ensure(ctx, current, component)
			if err != nil {
				return err
			}
			did := "started"
			if running == before {
				did = "already running"
			}
			port := current.Ports[portsOf[component][0]]
			c.report(progress, string(component), begun, fmt.Sprintf("%s, pid %d, port %d", did, running.PID, port))
		}
		return nil
	})
}

func (c *Cluster) report(progress io.Writer, step string, begun time.Time, result string) {
	_, _ = fmt.Fprintf(progress, "%-24s %5.1f s  %s\n", step, c.now().Sub(begun).Seconds(), result)
}

// prepare creates everything that components need to start, and stops all of them if their configuration is outdated.
func (c *Cluster) prepare(ctx context.Context, current *state) error {
	// The state file marks the folder as a cluster's before it contains anything valuable.
	if err := current.save(c.layout.state()); err != nil {
		return err
	}
	created, err := ensurePKI(c.layout)
	if err != nil {
		return err
	}
	running := map[Component]bool{}
	for component, known := range current.Processes {
		running[component] = known.alive()
	}
	ports, moved, err := assignPorts(current.Ports, running, c.ports)
	if err != nil {
		return err
	}
	if created || moved {
		if err := c.endEverything(ctx, current); err != nil {
			return err
		}
	}
	current.Ports = ports
	if err := current.save(c.layout.state()); err != nil {
		return err
	}
	return writeKubeconfigs(c.layout, serverURL(ports))
}

// ensure starts a component unless it runs, and waits until it is ready.
func (c *Cluster) ensure(ctx context.Context, current *state, component Component) (process, error) {
	client, err := c.probeClient()
	if err != nil {
		return process{}, err
	}
	running := started{process: current.Processes[component]}
	if !running.alive() {
		if running, err = c.launch(ctx, current, component); err != nil {
			return process{}, err
		}
	}
	if err := waitReady(ctx, client, probeURL(component, current.Ports), running); err != nil {
		return process{}, failure(c.layout, component, err)
	}
	return running.process, nil
}

// launch starts a component and records its process before anything else can fail.
func (c *Cluster) launch(ctx context.Context, current *state, component Component) (started, error) {
	switch component {
	case APIServer:
		if err := errors.Join(writeEgress(c.layout), writeAuditPolicy(c.layout, c.options.Audit)); err != nil {
			return started{}, err
		}
	case KWOK:
		if err := writeStages(c.layout.stageSources(), c.layout.kwokStages(), c.options.PodDeleteDelay); err != nil {
			return started{}, err
		}
		if err := c.prepareKWOK(ctx); err != nil {
			return started{}, fmt.Errorf("preparing %s: %w", component, err)
		}
	}
	args, err := arguments(c.layout, component, current.Ports, c.options)
	if err != nil {
		return started{}, err
	}
	running, err := launch(c.layout, component, args)
	if err != nil {
		return started{}, fmt.Errorf("starting %s from %s: %w", component, c.layout.binary(component), err)
	}
	current.Processes[component] = running.process
	return running, current.save(c.layout.state())
}
