package iac

import (
	"errors"

	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/internal/desired"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

var _, _ runs.Batcher = &task{}, &lookTask{}

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

// Together implements runs.Batcher. Runs whose batch key has changed since they were submitted
// are executed alone.
func (r *run) Together(all []runs.Task) {
	a := r.actuator
	var members []*run
	key := ""
	for _, task := range all {
		one := task.(interface{ shared() *run }).shared()
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

// leave removes the run from its batch.
func (r *run) leave() {
	if r.share != nil {
		r.share.Leave()
		r.share = nil
	}
}

// alone requeues a batched run that must be repeated alone.
func (r *run) alone(outcome error) error {
	if !errors.Is(outcome, runner.ErrAlone) {
		return outcome
	}
	r.actuator.logger.V(1).Info("A batched run is repeated alone", "Machine", r.key.String(), "operation",
		r.decision.Operation, "reason", outcome.Error())
	return runs.ErrAlone
}
