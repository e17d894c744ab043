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
func (r *run) Together(others []runs.Task) {
	a, all := r.actuator, []*run{r}
	for _, other := range others {
		all = append(all, other.(interface{ shared() *run }).shared())
	}
	var members []*run
	key := ""
	for _, one := range all {
		own := a.batchKey(one.wanted, one.facts, one.decision)
		if key == "" {
			key = own
		}
		if own != "" && own == key {
			members = append(members, one)
		}
	}
	if len(members) < 2 {
		return
	}
	for i, share := range a.runners[members[0].wanted.Module.Engine()].(runner.Batcher).Batch(len(members)) {
		members[i].share = share
	}
}

func (r *run) shared() *run { return r } // tasks and looks embed a run

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
