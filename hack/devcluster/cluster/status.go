package cluster

import (
	"context"
	"sync"
)

// ComponentState is the state of a component.
type ComponentState string

// The states of a component.
const (
	// StateRunning means that the process runs and is ready.
	StateRunning ComponentState = "Running"
	// StateNotReady means that the process runs but is not ready, or does not respond.
	StateNotReady ComponentState = "NotReady"
	// StateDead means that the process ended without having been stopped.
	StateDead ComponentState = "Dead"
	// StateStopped means that the component was stopped or never started.
	StateStopped ComponentState = "Stopped"
)

// ComponentStatus is the current status of a component.
type ComponentStatus struct {
	Component Component
	// PID is 0 if unknown.
	PID int
	// Port is the serving port, or 0 if the cluster was never up.
	Port  int
	State ComponentState
	// Detail is the response of a component that is not ready.
	Detail string
}

// Status returns the status of all components in start order. It changes nothing and takes no lock.
func (c *Cluster) Status(ctx context.Context) ([]ComponentStatus, error) {
	current, err := loadState(c.layout.state())
	if err != nil {
		return nil, err
	}
	list := make([]ComponentStatus, len(Components()))
	var asked sync.WaitGroup
	for i, component := range Components() {
		asked.Go(func() { list[i] = c.status(ctx, current, component) })
	}
	asked.Wait()
	return list, nil
}

func (c *Cluster) status(ctx context.Context, current *state, component Component) ComponentStatus {
	status := ComponentStatus{Component: component, Port: current.Ports[portsOf[component][0]], State: StateStopped}
	running, known := current.Processes[component]
	if !known {
		return status
	}
	status.PID = running.PID
	if !running.alive() {
		status.State = StateDead
		return status
	}
	client, err := c.probeClient()
	if err == nil {
		err = probe(ctx, client, probeURL(component, current.Ports))
	}
	if err != nil {
		status.State, status.Detail = StateNotReady, err.Error()
		return status
	}
	status.State = StateRunning
	return status
}
