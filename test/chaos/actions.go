package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
)

// asking bounds retries while the API server does not respond.
const asking = 45 * time.Second

// do executes an action, and retries while the API server is unavailable.
func (r *round) do(ctx context.Context, step Step) error {
	set := r.plan.Sets[step.Set]
	switch step.Action {
	case scaleUp:
		return r.resize(ctx, set, 1)
	case scaleDown:
		return r.resize(ctx, set, -1)
	case deleteSet:
		r.expect(func(e *Expected) { delete(e.Replicas, set.Name) })
		return until(ctx, asking, func(ctx context.Context) error {
			return client.IgnoreNotFound(r.client.Delete(ctx, r.object(set.Name)))
		})
	case deleteMachine:
		return r.onMachine(ctx, step, func(m *machinev1beta1.Machine) error {
			r.take(m)
			return r.client.Delete(ctx, m)
		})
	case editInPlace:
		return r.onMachine(ctx, step, func(m *machinev1beta1.Machine) error {
			return r.editInPlace(ctx, set.On, m.Name, step.Draw)
		})
	case editRefused:
		return r.onMachine(ctx, step, func(m *machinev1beta1.Machine) error {
			return r.edit(ctx, set.On, m.Name, maps.Clone(workloads[set.On].refused))
		})
	case rollInPlace:
		return r.roll(ctx, set, map[string]any{"zone": fmt.Sprintf("zone-%d", step.Draw)})
	case rollReplacing:
		return r.roll(ctx, set, map[string]any{"memory": fmt.Sprintf("%dGi", 17+step.Draw%8)})
	case rollBack:
		return r.roll(ctx, set, map[string]any{"zone": "zone-a", "memory": "16Gi"})
	}
	return fmt.Errorf("nobody knows how to %q", step.Action)
}

func inNamespace(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: lab.Namespace, Name: name}
}

// resize changes a MachineSet's size unless it was deleted. The last size wins, however long the API server was away.
func (r *round) resize(ctx context.Context, set Set, by int) error {
	var wanted bool
	r.expect(func(e *Expected) {
		var size int
		if size, wanted = e.Replicas[set.Name]; wanted {
			e.Replicas[set.Name] = max(size+by, 1)
		}
	})
	if !wanted {
		return missed("MachineSet %s was deleted", set.Name)
	}
	return until(ctx, asking, func(ctx context.Context) error {
		r.scaling.Lock()
		defer r.scaling.Unlock()
		var size int
		r.expect(func(e *Expected) { size, wanted = e.Replicas[set.Name] })
		if !wanted {
			return nil
		}
		return client.IgnoreNotFound(r.scale(ctx, set.Name, size))
	})
}

// roll changes the template of a MachineDeployment.
func (r *round) roll(ctx context.Context, set Set, fields map[string]any) error {
	return until(ctx, asking, func(ctx context.Context) error {
		return client.IgnoreNotFound(r.patchSpec(ctx, set.On, r.object(set.Name), fields))
	})
}

// take notes that the round itself takes a Machine or its instance away.
func (r *round) take(machine *machinev1beta1.Machine) {
	r.expect(func(e *Expected) { e.Taken[string(machine.UID)] = machine.Labels[setLabel] })
}

func (r *round) editInPlace(ctx context.Context, on Workload, machine string, draw int) error {
	if on != OpenStack {
		return r.edit(ctx, on, machine, map[string]any{"zone": fmt.Sprintf("zone-%d", draw)})
	}
	// A server's properties are fixed, but its credentials may move.
	copied := openstackCredentials + "-copy"
	if err := r.putSecret(ctx, copied, r.clouds(r.mine, r.theirs)); err != nil {
		return err
	}
	return r.edit(ctx, on, machine, map[string]any{"cloudsSecret": map[string]any{"name": copied}})
}

// onMachine acts on a Machine of the step's MachineSet that no fault has chosen.
func (r *round) onMachine(ctx context.Context, step Step, act func(*machinev1beta1.Machine) error) error {
	return until(ctx, asking, func(ctx context.Context) error {
		machine, err := r.choose(ctx, step, nil)
		if err != nil {
			if _, miss := errors.AsType[*missedError](err); miss {
				return nil
			}
			return err
		}
		return client.IgnoreNotFound(act(machine))
	})
}

// choose draws a Machine of the step's MachineSet that no fault has chosen and that is ready for the action.
func (r *round) choose(ctx context.Context, step Step,
	timely func(*machinev1beta1.Machine) bool) (*machinev1beta1.Machine, error) {
	machines, err := r.machines(ctx, r.plan.Sets[step.Set].Name)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var free []machinev1beta1.Machine
	for _, machine := range machines {
		if !r.victims[string(machine.UID)] && (timely == nil || timely(&machine)) {
			free = append(free, machine)
		}
	}
	if len(free) == 0 {
		return nil, missed("MachineSet %s has no Machine for it", r.plan.Sets[step.Set].Name)
	}
	return &free[step.Draw%len(free)], nil
}

// victim waits for a Machine that is ready for a fault, and reserves it.
func (r *round) victim(ctx context.Context, step Step, limit time.Duration,
	timely func(*machinev1beta1.Machine) bool) (*machinev1beta1.Machine, error) {
	var chosen *machinev1beta1.Machine
	err := until(ctx, limit, func(ctx context.Context) error {
		var err error
		chosen, err = r.choose(ctx, step, timely)
		return err
	})
	if err != nil {
		return nil, missed("there was no Machine within %s: %v", limit, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.victims[string(chosen.UID)] = true
	return chosen, nil
}

func isRunning(machine *machinev1beta1.Machine) bool {
	return machine.Status.Phase != nil && *machine.Status.Phase == machinev1beta1.PhaseRunning
}
