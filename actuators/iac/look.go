package iac

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// looksAt returns what is known of looks at the instance of an observation.
func (a *Actuator) looksAt(o *observation) lifecycle.Look {
	if o.asked == runs.Destroy || o.choice.State == nil {
		return lifecycle.Look{}
	}
	_, every := o.choice.State.Module.InstanceCheck()
	return a.looks.Of(o.machine.UID, every, a.clock.Now())
}

// lookTask looks whether an instance is still there. It takes no lock and writes nothing; an instance that it does not find is due for a drift check.
type lookTask struct {
	*task
	gone bool
}

var _ runs.Task = &lookTask{}

// look submits a look at an instance, among the drift checks. It has a run of its own in the pool, so that it is in nobody's way.
func (a *Actuator) look(o *observation) {
	wanted := o.choice.State
	a.looks.Submitted(o.machine.UID, a.clock.Now())
	t := &lookTask{task: newTask(a, o.machine, runs.Update)}
	t.poolUID, t.decision = "look-"+o.machine.UID, lifecycle.Decision{Operation: runs.Drift, Look: true}
	request := t.request(wanted)
	request.Group, request.Operation, request.Task = groupOf(o.machine), runs.Drift, t
	if !a.looks.Known(o.machine.UID).Failed {
		request.Batch = a.batchKey(wanted, o.facts, t.decision)
	}
	if _, err := a.pool.Submit(request); err != nil {
		a.logger.V(1).Info("The instance of a Machine is not looked at", "Machine", client.ObjectKeyFromObject(o.machine).String(), "reason", err.Error())
	}
}

// Intend implements runs.Task. What is read is what it was submitted for, or there is nothing to look at any more.
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
	if err != nil || choice.State == nil || t.facts.Lock != nil || !t.facts.Exists() || !t.facts.Settled(choice.State.Fingerprint) {
		return runs.ErrNothingToDo // what hinders an update is reported there
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
	with, able := t.actuator.runners[t.wanted.Module.Engine()].(runner.InstanceChecker)
	hcl, _ := t.wanted.Module.InstanceCheck()
	if !able || hcl == nil {
		return fmt.Errorf("module %s cannot have its instances looked at", t.wanted.Module.Name())
	}
	around, err := t.actuator.desired.Environment(ctx, t.wanted.Module)
	if err != nil {
		return err
	}
	spec, err := t.runSpec(around, engine.SearchNone)
	if err != nil {
		return err
	}
	check := with.CheckInstance
	if t.share != nil {
		check = t.share.CheckInstance
	}
	t.gone, err = check(ctx, spec, hcl, t.facts.Raw)
	return t.alone(err)
}

// Settle implements runs.Task. A look that failed is made again in its turn: a cause that stays shows in drift checks and updates.
func (t *lookTask) Settle(_ context.Context, outcome error) error {
	a := t.actuator
	if errors.Is(outcome, runs.ErrAlone) {
		return runs.ErrAlone
	}
	a.looks.Ended(t.uid, outcome)
	a.metrics.Looked(engineOf(t.wanted), t.gone, outcome)
	switch {
	case outcome != nil:
		a.logger.V(1).Info("A look at the instance of a Machine failed", "Machine", t.key.String(), "error", outcome.Error())
	case t.gone:
		a.looks.Missed(t.uid, a.clock.Now())
		a.logger.Info("A look did not find the instance of a Machine; its drift is checked now", "Machine", t.key.String())
	}
	return nil
}
