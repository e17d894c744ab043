package iac

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/internal/desired"
	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// readTask plans a search that only reads, with the module and inputs of one Machine. It takes no
// lock because there is no state.
type readTask struct {
	run
	search engine.Search
	// output names the output of the search; found is its value.
	output string
	found  json.RawMessage
	// end receives the outcome once.
	end func(found json.RawMessage, err error)
}

var _ runs.Task = &readTask{}

// read submits a search that only reads, among the drift checks, and returns its key in the pool.
func (a *Actuator) read(machine *machinev1beta1.Machine, f *lifecycle.Facts, wanted *desired.State,
	search engine.Search, output string, end func(found json.RawMessage, err error)) (runs.Key, error) {
	t := &readTask{run: newRun(a, machine, runs.Drift), search: search, output: output, end: end}
	t.facts, t.wanted = f, wanted
	t.poolKey = runs.Key(string(search) + "-" + t.id)
	request := t.request(wanted)
	request.Group, request.Task = string(search), t
	_, err := a.pool.Submit(request)
	return t.poolKey, err
}

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
	ended := make(chan error, 1)
	key, err := a.read(machine, f, choice.State, engine.SearchInventory, module.OutputInventory,
		func(found json.RawMessage, err error) {
			if err == nil && json.Unmarshal(found, &listed) != nil {
				err = fmt.Errorf("module %s: output %q of inventory/ violates the module contract",
					choice.State.Module.Name(), module.OutputInventory)
			}
			ended <- err
		})
	if err != nil {
		return nil, true, err
	}
	select {
	case err := <-ended:
		return listed, true, err
	case <-ctx.Done():
		a.pool.Cancel(key)
		a.pool.Interrupt(key)
		return nil, true, ctx.Err()
	}
}

// Intend implements runs.Task.
func (t *readTask) Intend(ctx context.Context) error {
	err := t.actuator.leader.Confirm(ctx)
	if err != nil {
		t.end(nil, err)
	}
	return err
}

// Execute implements runs.Task.
func (t *readTask) Execute(ctx context.Context) (err error) {
	with, known := t.actuator.runners[t.wanted.Module.Engine()]
	if !known {
		return fmt.Errorf("no engine is available for module %s", t.wanted.Module.Name())
	}
	spec, err := t.spec(ctx, t.search)
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
	if t.found, known = planned.Outputs[t.output]; !known {
		return fmt.Errorf("module %s: output %q of %s/ is unknown at plan time; derive it from data sources only",
			t.wanted.Module.Name(), t.output, t.search)
	}
	return nil
}

// Settle implements runs.Task.
func (t *readTask) Settle(_ context.Context, outcome error) error {
	t.end(t.found, outcome)
	return outcome
}
