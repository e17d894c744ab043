package iac

import (
	"context"
	"errors"

	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/internal/desired"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

var _ runs.Batcher = &task{}

// batchKey returns the key shared by runs that can be batched, or "" for a run that must be
// executed alone.
func (a *Actuator) batchKey(wanted *desired.State, f *lifecycle.Facts, d lifecycle.Decision) string {
	if wanted == nil || !d.Batched(f, wanted.Module.Spec().Lookup != nil) {
		return ""
	}
	with, able := a.runners[wanted.Module.Engine()].(runner.Batcher)
	if !able {
		return ""
	}
	inputs := wanted.Inputs
	key := with.BatchKey(runner.RunSpec{
		Module: wanted.Module, Variables: inputs.Variables, Environment: inputs.Environment, Files: inputs.Files,
		Credentials: wanted.CredentialsSecret,
	})
	if key == "" || !d.Look {
		return key
	}
	return "look " + key
}

// Together implements runs.Batcher. Runs whose key has changed since they were submitted are
// executed alone.
func (t *task) Together(others []runs.Task) {
	a := t.actuator
	var tasks []*task
	key := ""
	for _, other := range append([]runs.Task{t}, others...) {
		one := other.(interface{ itself() *task }).itself()
		own := a.batchKey(one.wanted, one.facts, one.decision)
		if key == "" {
			key = own
		}
		if own != "" && own == key {
			tasks = append(tasks, one)
		}
	}
	if len(tasks) < 2 {
		return
	}
	for i, share := range a.runners[tasks[0].wanted.Module.Engine()].(runner.Batcher).Batch(len(tasks)) {
		tasks[i].share = share
	}
}

func (t *task) itself() *task { return t } // a look embeds a task

// leave removes the run from its batch.
func (t *task) leave() {
	if t.share != nil {
		t.share.Leave()
		t.share = nil
	}
}

// alone requeues a batched run that must be repeated alone.
func (t *task) alone(outcome error) error {
	if !errors.Is(outcome, runner.ErrAlone) {
		return outcome
	}
	t.actuator.logger.V(1).Info("A batched run is repeated alone", "Machine", t.key.String(), "operation",
		t.decision.Operation, "reason", outcome.Error())
	return runs.ErrAlone
}

// giveBack releases the lock, and keeps the intent if the run's effects are unknown.
func (t *task) giveBack(ctx context.Context) error {
	p := record.NewPatch()
	if t.intent != nil {
		t.settleIntent(p, runs.ErrAlone)
	}
	if err := t.session.Release(ctx, p.MetaPatch); err != nil {
		return runs.NotSettled(errors.Join(errors.New("releasing the lock"), err))
	}
	return runs.ErrAlone
}
