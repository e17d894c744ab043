package iac

import (
	"context"
	"errors"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machine-iac/machine-iac-operator/actuators/reporting"
	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/internal/desired"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// task is one engine run for one Machine. In the queue it is a key and an operation; the rest is decided once it holds the lock.
type task struct {
	actuator *Actuator
	asked    runs.Operation
	key      types.NamespacedName
	uid      types.UID
	// poolUID is what the pool has the run as: the Machine's UID, but for looks and inventories, which are in nobody's way.
	poolUID types.UID
	id      string

	// machine is the Machine as it was read when the lock was taken; only its name for one that is gone.
	machine *machinev1beta1.Machine
	// facts, wanted and decision are what was found and decided then; wanted is nil where only an empty state is to be removed.
	facts    *lifecycle.Facts
	wanted   *desired.State
	decision lifecycle.Decision
	// intent is what was recorded; nil for a drift check.
	intent *record.Intent
	// changesModule says that an update is to bring the instance to another module than the pinned one, recordsModule that none is recorded yet.
	changesModule, recordsModule bool

	session *state.Session
	// share is the run's part in a batch, nil for one that is carried out alone.
	share runner.Share
	// transcript is what the engine says, withheld what of it may hold values of sensitive inputs.
	transcript, withheld reporting.Transcript
	// found is what the run learned of the instance, nil for nothing.
	found *record.DriftCheck
	// adoption is what was found about an adoption, nil for nothing.
	adoption *record.PlannedAdoption
	// absent says that there is no instance to adopt for a Machine that is being deleted.
	absent bool
	// changed says that the run has changed infrastructure.
	changed bool
	// making are the resources that the engine has begun to make and has not said to be made.
	making map[string]bool
	// lookedUp says that a lookup has shown whether there is an instance, imported that it has found one.
	lookedUp, imported bool
	// touched says that an engine was started that could change something.
	touched bool
	// unsaved is the workspace with a state that the engine could not save, until it is saved.
	unsaved runner.Workspace
}

var (
	_ runs.Task     = &task{}
	_ runs.Reasoner = &task{}
)

func newTask(a *Actuator, machine *machinev1beta1.Machine, asked runs.Operation) *task {
	return &task{
		actuator: a, asked: asked, id: string(uuid.NewUUID()), uid: machine.UID, poolUID: machine.UID,
		key: types.NamespacedName{Namespace: machine.Namespace, Name: machine.Name}, machine: machine.DeepCopy(),
	}
}

// Reason implements runs.Reasoner.
func (t *task) Reason() string { return t.decision.Reason }

// Intend implements runs.Task: it takes the lock, decides, and records what is intended, in one write on the very state that was decided
// upon. What an earlier run of the Machine could not save is saved first.
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
		return reporting.AsMachineError(t.asked, err)
	}
	t.session = session
	a.logger.V(1).Info("Decided", "Machine", t.key.String(), "operation", t.decision.Operation, "lookup", t.decision.Lookup, "reason", t.decision.Reason)
	return nil
}

// belongsTo returns the annotations that say whose the state is, also once the Machine is gone.
func (t *task) belongsTo() map[string]string {
	annotations := map[string]string{state.AnnotationMachine: t.key.Name}
	if set := record.MachineSetOf(t.machine); set != "" {
		annotations[record.MachineSetAnnotation] = set
	}
	return annotations
}

// prepare is called with the state that is about to be locked, and returns what the write that locks it records. The module and the
// Machine's witness are written before anything can be made.
func (t *task) prepare(ctx context.Context, snapshot *state.Snapshot) (state.Change, error) {
	if err := t.decide(ctx, snapshot); err != nil {
		return state.Change{}, err
	}
	if t.decision.Action != lifecycle.ActionStart {
		return state.Change{}, t.actuator.noRun(t.facts, t.decision)
	}
	if err := t.checkPlace(); err != nil {
		return state.Change{}, err
	}
	if t.recordsModule || t.changesModule {
		if err := t.actuator.modules.Keep(ctx, t.key.Namespace, t.wanted.Module); err != nil {
			return state.Change{}, err
		}
	}
	if t.decision.Operation == runs.Create && t.witnessIsDue() {
		w := record.Witness{UID: string(t.uid), Run: t.id, Since: t.actuator.clock.Now().UTC(), Place: t.wanted.Place}
		if made := t.identityUID(); made != t.uid {
			w.IdentityUID = made
		}
		if err := t.actuator.writeWitness(ctx, t.machine, w); err != nil {
			return state.Change{}, err
		}
	}
	return t.change(snapshot)
}

// identityUID returns the UID that the instance was made with, or is about to be.
func (t *task) identityUID() types.UID { return t.facts.Identity(t.uid) }

// witnessIsDue reports whether the Machine lacks a witness of what this create makes, or has one of a place where nothing was made.
func (t *task) witnessIsDue() bool {
	w := t.facts.Witness
	return w == nil || !t.facts.Bound() && !w.Place.Equal(t.wanted.Place)
}

// decide finds out what is to be done now. It may be called again where another writer was faster.
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
	t.decision = lifecycle.Decide(t.asked, t.facts, t.actuator.target(o))
	if t.decision.Action == lifecycle.ActionStart && t.decision.Operation != t.asked {
		t.decision = lifecycle.Decision{Action: lifecycle.ActionDone, Reason: "something else is to be done now: " + t.decision.Reason}
	}
	if t.decision.Action != lifecycle.ActionStart || t.wanted == nil {
		return nil
	}
	t.bindModule()
	return nil
}

// observe reads the Machine anew, and the facts about it.
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

// bindModule decides what the run records of its module.
func (t *task) bindModule() {
	update, recorded := t.decision.Operation == runs.Update, t.facts.Record.Module
	t.changesModule = update && recorded != "" && recorded != t.wanted.Module.Reference()
	t.recordsModule = t.decision.Operation == runs.Create || update && (recorded == "" || t.facts.Unrecorded())
}

// change returns what is recorded with the lock.
func (t *task) change(snapshot *state.Snapshot) (state.Change, error) {
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
	if t.recordsModule && (!t.facts.Unrecorded() || t.facts.Inputs == nil) { // else they are those of the run that was abandoned
		change.Attachments = t.attachments()
	}
	change.Meta = p.MetaPatch
	return change, nil
}

// nextIntent returns the intent of this run, with what is known of an earlier one that was abandoned. takenOver says that the lock is that of a
// run whose process is dead.
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
