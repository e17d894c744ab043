package iac

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// looksAt returns the looks at the instance of an observation.
func (a *Actuator) looksAt(o *observation) lifecycle.Look {
	if o.asked == runs.Destroy || o.choice.State == nil {
		return lifecycle.Look{}
	}
	return a.looks.Of(o.machine.UID, o.choice.State.Module.LookInterval(), a.clock.Now())
}

// lookTask checks that an instance still exists. It takes no lock and writes nothing. If the
// instance is not found, a drift check becomes due.
type lookTask struct {
	run
	gone bool
}

var _ runs.Task = &lookTask{}

// look submits a look among the drift checks. It has a pool entry of its own, so that it never
// delays a Machine's run.
func (a *Actuator) look(o *observation) {
	wanted := o.choice.State
	a.looks.Submitted(o.machine.UID, a.clock.Now())
	t := &lookTask{run: newRun(a, o.machine, runs.Drift)}
	t.poolKey, t.decision = runs.Key("look-"+o.machine.UID), lifecycle.Decision{Operation: runs.Drift, Look: true}
	request := t.request(wanted)
	request.Task = t
	if !a.looks.Known(o.machine.UID).Failed {
		request.Batch = a.batchKey(wanted, o.facts, t.decision)
	}
	if _, err := a.pool.Submit(request); err != nil {
		a.logger.V(1).Info("Skipping the look at a Machine's instance", "Machine",
			client.ObjectKeyFromObject(o.machine).String(), "reason", err.Error())
	}
}

// Intend implements runs.Task. The state must be the one that the look was submitted for; otherwise
// there is nothing to do.
func (t *lookTask) Intend(ctx context.Context) error {
	a := t.actuator
	if err := a.leader.Confirm(ctx); err != nil {
		return err
	}
	machine, err := a.readMachine(ctx, t.key, t.uid)
	if err != nil {
		return err
	}
	if machine == nil || !machine.DeletionTimestamp.IsZero() {
		a.looks.Forget(t.uid)
		return runs.ErrNothingToDo
	}
	t.machine = machine
	if t.facts, err = a.desired.Facts(ctx, machine); err != nil {
		return err
	}
	choice, err := a.choose(ctx, machine, t.facts, runs.Update)
	if err != nil || choice.State == nil || !t.facts.Settled(choice.State.Fingerprint) {
		choice.State, err = a.desired.Applied(ctx, machine, t.facts)
	}
	if err != nil || t.facts.Lock != nil || !t.facts.Exists() {
		return runs.ErrNothingToDo // the update reports the cause
	}
	t.wanted = choice.State
	if t.checkPlace() != nil {
		return runs.ErrNothingToDo
	}
	return nil
}

// Execute implements runs.Task.
func (t *lookTask) Execute(ctx context.Context) error {
	defer t.leave()
	var err error
	t.gone, err = t.lookAt(ctx)
	return t.alone(err)
}

// Settle implements runs.Task. A failed look is repeated when the next one is due: a lasting cause
// shows in drift checks and updates.
func (t *lookTask) Settle(_ context.Context, outcome error) error {
	a := t.actuator
	if errors.Is(outcome, runs.ErrAlone) {
		return runs.ErrAlone
	}
	a.looks.Ended(t.uid, outcome)
	a.metrics.Looked(engineOf(t.wanted), t.gone, outcome)
	switch {
	case outcome != nil:
		a.logger.V(1).Info("A look at a Machine's instance failed", "Machine", t.key.String(), "error", outcome.Error())
	case t.gone:
		a.looks.Missed(t.uid, a.clock.Now())
		a.logger.Info("A look did not find a Machine's instance; checking drift now", "Machine", t.key.String())
	}
	return nil
}
