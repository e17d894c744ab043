package iac

import (
	"context"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/actuators/reporting"
	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// update brings an instance to its providerSpec.
type update struct{ change }

// execute brings an instance to its providerSpec, in place or not at all. If its state is missing,
// it is looked up first.
func (t update) execute(ctx context.Context) error {
	if t.decision.Lookup {
		found, err := lookup{t.task}.find(ctx)
		if err == nil && !found {
			return t.instanceMissing("the instance is gone: its state is missing, and the lookup finds no instance")
		}
		return err
	}
	if t.beside && t.wanted.ModuleMissing != "" {
		return actuators.UnsupportedChange("%s", t.wanted.ModuleMissing) // another module may expect a different instance
	}
	return t.bring(ctx)
}

// settle implements operation.
func (t update) settle(ctx context.Context, outcome error) error {
	if outcome == nil && !t.beside && (!t.decision.Lookup || t.facts.Inputs == nil) {
		if err := t.storeInputs(ctx); err != nil {
			return err
		}
	}
	if err := t.conclude(ctx, t.patchFor(outcome), outcome); err != nil || t.reportFound() {
		return err
	}
	if t.decision.Repair {
		t.actuator.metrics.Repaired(engineOf(t.wanted), nil, t.changed)
	}
	switch {
	case t.decision.Repair && t.changed:
		reporting.DriftRepaired(t.machine).Send(t.actuator.recorder)
	case t.changesModule:
		reporting.Succeeded(runs.Update, t.machine,
			"Brought the instance to module "+t.wanted.Module.Reference()).Send(t.actuator.recorder)
	case t.changed:
		reporting.Succeeded(runs.Update, t.machine, "Changed the instance in place").Send(t.actuator.recorder)
	}
	return nil
}

// change is what a create and an update have in common.
type change struct{ *task }

// bring brings what the state has to the providerSpec, or replaces what an interrupted create left.
func (t change) bring(ctx context.Context) error {
	err := t.inWorkspace(ctx, engine.SearchNone,
		func(workspace runner.Workspace) error { return t.planAndApply(ctx, workspace) })
	if err != nil {
		return err
	}
	return t.replaceBroken(ctx)
}
