package iac

import (
	"context"
	"errors"
	"sync/atomic"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/actuators/recovery"
	"github.com/machine-iac/machine-iac-operator/actuators/reporting"
	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// task is one engine run for one Machine. In the queue it is a key and an operation; everything
// else is decided under the lock.
type task struct {
	run
	// beside marks a run with the configuration applied last, while the Machine's update cannot be
	// made.
	beside bool
	// intent is the recorded intent; nil for a drift check.
	intent *record.Intent
	// changesModule marks an update to another module than the pinned one, recordsModule that none
	// is recorded yet.
	changesModule, recordsModule bool

	// does is the operation that was decided on.
	does    operation
	session *state.Session
	// epoch is an invalid epoch found in the state, or empty.
	epoch string
	// found is the run's finding about the instance, or nil.
	found *record.DriftCheck
	// changed reports whether the run has changed infrastructure.
	changed bool
	// applies reports whether the engine is creating or changing the instance.
	applies atomic.Bool
	// making are the resources whose creation the engine has started and not finished.
	making map[string]bool
	// lookedUp reports that a lookup has settled whether an instance exists; imported that it found
	// one.
	lookedUp, imported bool
	providers          reporting.UsedProviders
	// touched reports that an engine was started that could change something; saved that Settle
	// saved its state.
	touched, saved bool
	// unsaved is the workspace with a state that the engine failed to save, until it is saved.
	unsaved runner.Workspace
}

// operation is what a task does under the lock.
type operation interface {
	// execute does the work with an engine.
	execute(ctx context.Context) error
	// settle records and reports the outcome, and releases the lock.
	settle(ctx context.Context, outcome error) error
}

// operation returns the operation that the decision asks for.
func (t *task) operation() operation {
	switch d := t.decision; {
	case d.Release:
		return release{t}
	case d.Adopt:
		return &adopt{task: t}
	case d.Operation == runs.Create:
		return create{change{t}}
	case d.Operation == runs.Update:
		return update{change{t}}
	case d.Operation == runs.Drift:
		return driftCheck{t}
	}
	return destroy{t}
}

var (
	_ runs.Task     = &task{}
	_ runs.Reasoner = &task{}
	_ runs.Finisher = &task{}
)

func newTask(a *Actuator, machine *machinev1beta1.Machine, asked runs.Operation) *task {
	return &task{run: newRun(a, machine, asked)}
}

// Reason implements runs.Reasoner.
func (t *task) Reason() string { return t.decision.Reason }

// Intend implements runs.Task. It takes the lock, decides, and records the intent in one write
// against the state version that it decided on. It first saves what an earlier run of the Machine
// could not.
func (t *task) Intend(ctx context.Context) error {
	a := t.actuator
	if err := a.leader.Confirm(ctx); err != nil {
		return err
	}
	if err := a.recovery.Recover(ctx, t.uid); err != nil {
		return reporting.Typed(t.asked, err)
	}
	session, err := a.recovery.Acquire(ctx, state.KeyFor(t.key.Namespace, t.uid), state.AcquireOptions{
		Lock:        state.Lock{Owner: a.owner, Run: t.id, Operation: string(t.asked)},
		Labels:      map[string]string{state.LabelMachineUID: string(t.uid)},
		Annotations: t.belongsTo(),
		Decide:      t.prepare,
	})
	if errors.Is(err, runs.ErrNothingToDo) {
		return runs.ErrNothingToDo
	}
	if err != nil {
		return t.notBegun(err)
	}
	t.session, t.does = session, t.operation()
	if t.epoch != "" {
		reporting.EpochRefuted(t.machine, t.epoch).Send(a.recorder)
	}
	a.logger.V(1).Info("Decided", "Machine", t.key.String(), "operation", t.decision.Operation, "lookup",
		t.decision.Lookup, "reason", t.decision.Reason)
	return nil
}

// notBegun returns the error of a run that could not record its intent. A refused write gets an
// event, since no run has begun that would report it.
func (t *task) notBegun(err error) error {
	failed := reporting.AsMachineError(t.asked, err)
	if !reporting.RefusedWrite(err) {
		return failed
	}
	reporting.Failure(t.actuator.recorder, t.actuator.metrics, t.asked, t.machine, failed)
	return runs.RetrySoon(failed)
}

// belongsTo returns the annotations that identify the state's owner even after the Machine is gone.
func (t *task) belongsTo() map[string]string {
	annotations := map[string]string{state.AnnotationMachine: t.key.Name}
	if set := record.MachineSetOf(t.machine); set != "" {
		annotations[record.MachineSetAnnotation] = set
	}
	return annotations
}

// prepare returns the records for the write that locks the given state. The module and the
// Machine's witness are written before anything can be created.
func (t *task) prepare(ctx context.Context, snapshot *state.Snapshot) (state.Change, error) {
	if err := t.decide(ctx, snapshot); err != nil {
		return state.Change{}, err
	}
	t.epoch = recovery.Refuted(t.actuator.leader.Epoch(), snapshot)
	if t.decision.Action != lifecycle.ActionStart {
		return state.Change{}, t.actuator.noRun(t.facts, t.decision)
	}
	if err := errors.Join(t.checkPlace(), t.checkState()); err != nil {
		return state.Change{}, err
	}
	if t.recordsModule || t.changesModule {
		if err := t.actuator.modules.Keep(ctx, t.key.Namespace, t.wanted.Module); err != nil {
			return state.Change{}, err
		}
	}
	if t.decision.Operation == runs.Create && t.witnessIsDue() {
		w := record.Witness{Run: t.id, Since: t.actuator.clock.Now().UTC(), Place: t.wanted.Place}
		if made := t.identityUID(); made != t.uid {
			w.IdentityUID = made
		}
		if err := t.actuator.writeWitness(ctx, t.machine, w); err != nil {
			return state.Change{}, err
		}
	}
	return t.begin(snapshot)
}

// witnessIsDue reports whether the Machine lacks a witness for this create, or has one for a place
// where nothing was created.
func (t *task) witnessIsDue() bool {
	w := t.facts.Witness
	return w == nil || w.Unsigned || !t.facts.Bound() && !w.Place.Equal(t.wanted.Place)
}

// decide makes the decision under the lock. It is called again after a write conflict.
func (t *task) decide(ctx context.Context, snapshot *state.Snapshot) error {
	if err := t.observe(ctx, snapshot); err != nil {
		return err
	}
	if t.decision = lifecycle.Stale(t.asked, t.facts); t.decision.Action == lifecycle.ActionDone {
		return nil
	}
	if err := t.unclaimed(ctx); err != nil {
		return err
	}
	o := newObservation(t.asked, t.machine, t.facts)
	if t.beside { // the inputs and module in use are not recorded
		t.take(t.actuator.decideBeside(ctx, o, false))
		t.wanted = o.choice.State
		return nil
	}
	var err error
	o.choice, err = t.actuator.choose(ctx, t.machine, t.facts, t.asked)
	switch {
	case err != nil && t.asked != runs.Destroy:
		return err
	case err != nil && (t.facts.HasResources() || t.facts.Unrecorded()):
		return reporting.Undeletable(t.facts, err)
	case o.choice.State == nil && o.choice.Withheld != nil:
		return reporting.Typed(t.asked, o.choice.Withheld)
	}
	t.wanted = o.choice.State
	t.take(lifecycle.Decide(t.asked, t.facts, t.actuator.target(o)))
	if t.decision.Action != lifecycle.ActionStart || t.wanted == nil {
		return nil
	}
	t.bindModule()
	return nil
}

// take accepts a decision unless it is about another operation than this run's.
func (t *task) take(d lifecycle.Decision) {
	t.decision = d
	if d.Action == lifecycle.ActionStart && d.Operation != t.asked {
		t.decision = lifecycle.Decision{Action: lifecycle.ActionDone, Reason: "superseded: " + d.Reason}
	}
}

// observe rereads the Machine and the facts about it.
func (t *task) observe(ctx context.Context, snapshot *state.Snapshot) error {
	machine, err := t.actuator.readMachine(ctx, t.key, t.uid)
	if err != nil {
		return err
	}
	gone := machine == nil
	if gone {
		machine = &machinev1beta1.Machine{}
		machine.Namespace, machine.Name, machine.UID = t.key.Namespace, t.key.Name, t.uid
	}
	if snapshot.ResourceVersion == "" {
		snapshot = nil
	}
	t.machine, t.wanted = machine, nil
	if t.facts, err = t.actuator.desired.FactsOf(ctx, machine, snapshot); err != nil || !gone {
		return err
	}
	var meta map[string]string
	if snapshot != nil {
		meta = snapshot.Meta
	}
	return t.facts.SetGone(meta)
}

// bindModule decides which module the run records.
func (t *task) bindModule() {
	update, recorded := t.decision.Operation == runs.Update, t.facts.Record.Module
	t.changesModule = update && recorded != "" && recorded != t.wanted.Module.Reference()
	t.recordsModule = t.decision.Operation == runs.Create || update && (recorded == "" || t.facts.Unrecorded())
}

// begin returns the records to write with the lock.
func (t *task) begin(snapshot *state.Snapshot) (state.Change, error) {
	change := state.Change{Operation: string(t.decision.Operation)}
	if t.decision.Operation == runs.Drift {
		if t.decision.Adopt {
			change.Meta = t.adoptionBegins(record.NewPatch()).MetaPatch
		}
		return change, nil
	}
	t.intent = t.nextIntent(snapshot.Lock != nil)
	p := record.NewPatch().SetIntent(*t.intent).SetIdentityUID(t.identityUID(), t.uid)
	if t.decision.Adopt {
		t.adoptionBegins(p)
	}
	if t.recordsModule {
		p.SetModule(t.wanted.Module.Reference())
		p.SetPlace(t.wanted.Place)
	}
	if t.recordsModule && (!t.facts.CutShort() || t.facts.Inputs == nil) { // otherwise keep the abandoned run's inputs
		change.Attachments = t.attachments()
	}
	change.Meta = p.MetaPatch
	return change, nil
}

// nextIntent returns this run's intent, including what is known about an earlier abandoned run.
// takenOver reports that the lock was held by a run of a dead process.
func (t *task) nextIntent(takenOver bool) *record.Intent {
	now := t.actuator.clock.Now().UTC()
	next := &record.Intent{Operation: t.decision.Operation, Run: t.id, Since: now, Reason: t.decision.Reason}
	if !t.facts.Unrecorded() || t.facts.ConfirmedAbsent() {
		return next
	}
	next.Abandoned = t.facts.AbandonedRun()
	if earlier := t.facts.Record.Intent; earlier != nil {
		next.Died, next.Looked = earlier.Died, earlier.Looked
	}
	if next.Died.IsZero() || takenOver {
		next.Died, next.Looked = now, false
	}
	return next
}

// Execute implements runs.Task.
func (t *task) Execute(ctx context.Context) error {
	defer t.leave()
	return t.alone(t.hinted(t.does.execute(ctx)))
}

// hinted adds the module's hint to an engine's error. It wraps the error, because the tasks of a
// batch share it.
func (t *task) hinted(err error) error {
	failed, ok := errors.AsType[*failure.Error](err)
	if !ok || failed.Hint != "" || t.wanted == nil {
		return err
	}
	return failure.WithHint(err, failure.HintOf(failed.Diagnostics, t.wanted.Module.Hint))
}
