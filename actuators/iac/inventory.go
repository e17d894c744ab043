package iac

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// inventoryTask lists a cluster's instances with the module and inputs of one Machine. It takes no
// lock because there is no state.
type inventoryTask struct {
	*task
	listed []lifecycle.ListedInstance
	ended  chan error
}

var _ runs.Task = &inventoryTask{}

// ListInstances lists the cluster's instances in the Machine's place, with its module and
// credentials. known is false if the module cannot list, or if the Machine's desired state is
// unknown. It queues among the drift checks.
func (a *Actuator) ListInstances(ctx context.Context,
	machine *machinev1beta1.Machine) (listed []lifecycle.ListedInstance, known bool, err error) {
	f, err := a.desired.Facts(ctx, machine)
	if err != nil {
		return nil, false, err
	}
	choice, err := a.choose(ctx, machine, f, runs.Update)
	if err != nil || choice.State == nil || len(choice.State.Module.InventoryFiles()) == 0 {
		return nil, false, err
	}
	t := &inventoryTask{task: newTask(a, machine, runs.Drift), ended: make(chan error, 1)}
	t.facts, t.wanted = f, choice.State
	t.poolUID = types.UID("inventory-" + t.id)
	request := t.request(choice.State)
	request.Group, request.Task = "inventory", t
	if _, err := a.pool.Submit(request); err != nil {
		return nil, true, err
	}
	select {
	case err := <-t.ended:
		return t.listed, true, err
	case <-ctx.Done():
		a.pool.Cancel(t.poolUID)
		a.pool.Interrupt(t.poolUID)
		return nil, true, ctx.Err()
	}
}

// Intend implements runs.Task.
func (t *inventoryTask) Intend(ctx context.Context) error {
	err := t.actuator.leader.Confirm(ctx)
	if err != nil {
		t.ended <- err
	}
	return err
}

// Execute implements runs.Task.
func (t *inventoryTask) Execute(ctx context.Context) (err error) {
	with, known := t.actuator.runners[t.wanted.Module.Engine()]
	if !known {
		return fmt.Errorf("no engine is available for module %s", t.wanted.Module.Name())
	}
	around, err := t.actuator.desired.Environment(ctx, t.wanted.Module)
	if err != nil {
		return err
	}
	spec, err := t.runSpec(around, engine.SearchInventory)
	if err != nil {
		return err
	}
	workspace, err := with.Open(ctx, spec)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, workspace.Close()) }()
	if _, err := workspace.Plan(ctx); err != nil {
		return err
	}
	planned, err := workspace.Planned(ctx)
	if err != nil {
		return err
	}
	output, known := planned.Outputs[module.OutputInventory]
	if !known {
		return fmt.Errorf("module %s: output %q of inventory/ is unknown at plan time; derive it from data sources only",
			t.wanted.Module.Name(), module.OutputInventory)
	}
	if err := json.Unmarshal(output, &t.listed); err != nil {
		return fmt.Errorf("module %s: output %q of inventory/ violates the module contract: %w", t.wanted.Module.Name(),
			module.OutputInventory, err)
	}
	return nil
}

// Settle implements runs.Task.
func (t *inventoryTask) Settle(_ context.Context, outcome error) error {
	t.ended <- outcome
	return outcome
}
