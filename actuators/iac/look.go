package iac

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// looks are the looks at instances of this process, by the UIDs of Machines.
type looks struct {
	mu    sync.Mutex
	byUID map[types.UID]lifecycle.Look
}

// of returns the looks at the instance of an observation, and begins to keep account of them.
func (l *looks) of(o *observation, now time.Time) lifecycle.Look {
	if o.asked == runs.Destroy || o.choice.State == nil {
		return lifecycle.Look{}
	}
	_, every := o.choice.State.Module.InstanceCheck()
	l.mu.Lock()
	defer l.mu.Unlock()
	look, known := l.byUID[o.machine.UID]
	if !known && every == 0 {
		return lifecycle.Look{}
	}
	if !known {
		look.Since = now
	}
	look.Every = every
	l.set(o.machine.UID, look)
	return look
}

// set keeps a look. The caller holds the lock.
func (l *looks) set(uid types.UID, look lifecycle.Look) {
	if l.byUID == nil {
		l.byUID = map[types.UID]lifecycle.Look{}
	}
	l.byUID[uid] = look
}

// known returns the looks at the instance of a Machine that it was looked at; zero for another.
func (l *looks) known(uid types.UID) lifecycle.Look {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byUID[uid]
}

// change changes what is kept of a Machine, where anything is.
func (l *looks) change(uid types.UID, with func(*lifecycle.Look)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if look, known := l.byUID[uid]; known {
		with(&look)
		l.byUID[uid] = look
	}
}

// forget drops what is kept of a Machine.
func (l *looks) forget(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byUID, uid)
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
	a.looks.change(o.machine.UID, func(l *lifecycle.Look) { l.Since, l.Made = a.clock.Now(), true })
	request := runs.Request{
		Machine: client.ObjectKeyFromObject(o.machine), UID: "look-" + o.machine.UID, Group: groupOf(o.machine), Operation: runs.Drift,
		Engine: engineOf(wanted), Fingerprint: wanted.Fingerprint, Task: &lookTask{task: newTask(a, o.machine, runs.Update)},
	}
	if wanted.CredentialsSecret != "" {
		request.Credential = o.machine.Namespace + "/" + wanted.CredentialsSecret
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
		a.looks.forget(t.uid)
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
	t.gone, err = with.CheckInstance(ctx, spec, hcl, t.facts.Raw)
	return err
}

// Settle implements runs.Task. A look that failed is made again in its turn: a cause that stays shows in drift checks and updates.
func (t *lookTask) Settle(_ context.Context, outcome error) error {
	a := t.actuator
	a.metrics.Looked(engineOf(t.wanted), t.gone, outcome)
	switch {
	case outcome != nil:
		a.logger.V(1).Info("A look at the instance of a Machine failed", "Machine", t.key.String(), "error", outcome.Error())
	case t.gone:
		a.looks.change(t.uid, func(l *lifecycle.Look) { l.Gone = a.clock.Now() })
		a.logger.Info("A look did not find the instance of a Machine; its drift is checked now", "Machine", t.key.String())
	}
	return nil
}
