package iac

import (
	"context"
	"fmt"

	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/internal/desired"
	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

var _ runs.Batcher = &task{}

// batchKey returns what a drift check has in common with those that it may be made together with; empty where it is made alone, as it is for an
// instance that was not as applied the last time.
func (a *Actuator) batchKey(wanted *desired.State, f *lifecycle.Facts, d lifecycle.Decision) string {
	with, able := a.runners[wanted.Module.Engine()].(runner.BatchChecker)
	if check := f.Record.Check; !able || d.Operation != runs.Drift || d.Lookup || d.Adopt || check != nil && check.Result != record.DriftNone {
		return ""
	}
	inputs := wanted.Inputs
	return with.BatchKey(runner.RunSpec{
		Module: wanted.Module, Variables: inputs.Variables, Environment: inputs.Environment, Files: inputs.Files, Credentials: wanted.CredentialsSecret,
	})
}

// ExecuteTogether implements runs.Batcher. Only instances that are as applied have been checked by that.
func (t *task) ExecuteTogether(ctx context.Context, others []runs.Task) []error {
	tasks, outcomes := []*task{t}, []error{runs.ErrAlone}
	for _, other := range others {
		tasks, outcomes = append(tasks, other.(*task)), append(outcomes, runs.ErrAlone)
	}
	if err := t.actuator.leader.Confirm(ctx); err != nil {
		for i := range outcomes {
			outcomes[i] = err
		}
		return outcomes
	}
	asApplied, err := t.checkTogether(ctx, tasks)
	if err != nil {
		t.actuator.logger.V(1).Info("Machines that were checked together are checked alone", "Machine", t.key.String(), "count", len(tasks), "reason", err.Error())
	}
	for i, one := range tasks {
		if asApplied[one] {
			one.transcript.Add(fmt.Sprintf("(Planned by one process for %d Machines: nothing of this one has changed.)", len(asApplied)))
			one.found, outcomes[i] = one.checkedNow(record.DriftCheck{Result: record.DriftNone}), nil
		}
	}
	return outcomes
}

// checkTogether returns which of the tasks have found their instances as applied. Those that do not have in common by now what they had when they were
// submitted are not there.
func (t *task) checkTogether(ctx context.Context, tasks []*task) (map[*task]bool, error) {
	around, err := t.actuator.desired.Environment(ctx, t.wanted.Module)
	if err != nil {
		return nil, err
	}
	var batch []*task
	var specs []runner.RunSpec
	key := t.actuator.batchKey(t.wanted, t.facts, t.decision)
	for _, one := range tasks {
		spec, err := one.runSpec(around, engine.SearchNone)
		if _, unable := one.runner(ctx); err == nil && unable == nil && key != "" && t.actuator.batchKey(one.wanted, one.facts, one.decision) == key {
			batch, specs = append(batch, one), append(specs, spec)
		}
	}
	if len(batch) < 2 {
		return nil, nil
	}
	clean, err := t.actuator.runners[t.wanted.Module.Engine()].(runner.BatchChecker).CheckBatch(ctx, specs)
	if err != nil {
		return nil, err
	}
	found := map[*task]bool{}
	for i, one := range batch {
		found[one] = clean[i]
	}
	return found, nil
}
