package iac

import (
	"context"
	"errors"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/internal/desired"
	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// identity names a run to whoever finds its folder after a crash.
type identity struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	Owner     string `json:"owner"`
	Run       string `json:"run"`
}

// task is one engine run for one Machine. In the queue it is a key and an operation; the rest is decided once it holds the lock.
type task struct {
	actuator *Actuator
	asked    runs.Operation
	key      types.NamespacedName
	uid      types.UID
	id       string

	// machine is the Machine as it was read when the lock was taken; only its name for one that is gone.
	machine *machinev1beta1.Machine
	// facts, wanted and decision are what was found and decided then; wanted is nil where only an empty state is to be removed.
	facts    *lifecycle.Facts
	wanted   *desired.State
	decision lifecycle.Decision
	// intent is what was recorded; nil for a drift check.
	intent *lifecycle.Intent
	// renews says that an update is to bring the instance to another module than its own, records that none is recorded yet.
	renews, records bool

	session *state.Session
	// transcript is what the engine says.
	transcript transcript
	// found is what the run learned of the instance, nil for nothing.
	found *lifecycle.DriftCheck
	// changed says that the run has changed infrastructure.
	changed bool
	// making are the resources that the engine has begun to make and has not said to be made.
	making map[string]bool
	// lookedUp says that a lookup has shown whether there is an instance, imported that it has found one.
	lookedUp, imported bool
	// touched says that an engine was started that could change something.
	touched bool
	// kept is the folder with a state that the engine could not save, until it is saved.
	kept runner.Workspace
}

var (
	_ runs.Task     = &task{}
	_ runs.Reasoner = &task{}
)

func newTask(a *Actuator, machine *machinev1beta1.Machine, asked runs.Operation) *task {
	return &task{
		actuator: a, asked: asked, id: string(uuid.NewUUID()), uid: machine.UID,
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
	if err := a.recoverOf(ctx, t.uid); err != nil {
		return typed(t.asked, err)
	}
	session, err := a.acquire(ctx, state.KeyFor(t.key.Namespace, t.uid), state.AcquireOptions{
		Lock:        state.Lock{Owner: a.owner, Run: t.id, Operation: string(t.asked)},
		Labels:      map[string]string{state.LabelMachineUID: string(t.uid)},
		Annotations: map[string]string{state.AnnotationMachine: t.key.Name},
		Decide:      t.decide,
	})
	if errors.Is(err, runs.ErrNothingToDo) {
		return runs.ErrNothingToDo
	}
	if err != nil {
		return asMachineError(t.asked, err)
	}
	t.session = session
	a.logger.V(1).Info("Decided", "Machine", t.key.String(), "operation", t.decision.Operation, "lookup", t.decision.Lookup, "reason", t.decision.Reason)
	return nil
}

// decide is called with the state that is about to be locked, and returns what the write that locks it records. The module and the
// Machine's witness are written before anything can be made.
func (t *task) decide(ctx context.Context, snapshot *state.Snapshot) (state.Change, error) {
	if err := t.judge(ctx, snapshot); err != nil {
		return state.Change{}, err
	}
	if t.decision.Action != lifecycle.ActionStart {
		return state.Change{}, t.actuator.noRun(t.facts, t.decision)
	}
	if err := t.placed(); err != nil {
		return state.Change{}, err
	}
	if t.records || t.renews {
		if err := t.actuator.modules.Keep(ctx, t.key.Namespace, t.wanted.Module); err != nil {
			return state.Change{}, err
		}
	}
	if t.decision.Operation == runs.Create && t.facts.Witness == nil {
		w := lifecycle.Witness{UID: string(t.uid), Run: t.id, Since: t.actuator.clock.Now().UTC(), Place: t.wanted.Place}
		if err := t.actuator.testify(ctx, t.machine, w); err != nil {
			return state.Change{}, err
		}
	}
	return t.intends(snapshot)
}

// judge finds out what is to be done now. It may be called again where another was faster.
func (t *task) judge(ctx context.Context, snapshot *state.Snapshot) error {
	if err := t.look(ctx, snapshot); err != nil {
		return err
	}
	if t.decision = lifecycle.Stale(t.asked, t.facts); t.decision.Action == lifecycle.ActionDone {
		return nil
	}
	o := newObservation(t.asked, t.machine, t.facts)
	var err error
	o.choice, err = t.actuator.choose(ctx, t.machine, t.facts, t.asked)
	switch {
	case err != nil && t.asked != runs.Destroy:
		return err
	case err != nil && (t.facts.HasResources() || t.facts.Lost()):
		return undeletable(t.facts, err)
	case o.choice.State == nil && o.choice.Withheld != nil:
		return typed(t.asked, o.choice.Withheld)
	}
	t.wanted = o.choice.State
	t.decision = lifecycle.Decide(t.asked, t.facts, t.actuator.target(o))
	if t.decision.Action == lifecycle.ActionStart && t.decision.Operation != t.asked {
		t.decision = lifecycle.Decision{Action: lifecycle.ActionDone, Reason: "something else is to be done now: " + t.decision.Reason}
	}
	if t.decision.Action != lifecycle.ActionStart || t.wanted == nil {
		return nil
	}
	t.bind()
	return nil
}

// look reads the Machine anew, and what it and its state are.
func (t *task) look(ctx context.Context, snapshot *state.Snapshot) error {
	machine, err := t.actuator.fresh(ctx, t.key, t.uid)
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
	if t.facts, err = lifecycle.NewFacts(machine, snapshot); err == nil {
		t.facts.Gone = gone
	}
	return err
}

// bind says what the run records of its module.
func (t *task) bind() {
	update, recorded := t.decision.Operation == runs.Update, t.facts.Record.Module
	t.renews = update && recorded != "" && recorded != t.wanted.Module.Reference()
	t.records = t.decision.Operation == runs.Create || update && (recorded == "" || t.facts.Lost())
}

// intends returns what is recorded with the lock.
func (t *task) intends(snapshot *state.Snapshot) (state.Change, error) {
	change := state.Change{Operation: string(t.decision.Operation)}
	if t.decision.Operation == runs.Drift {
		return change, nil
	}
	t.intent = t.nextIntent(snapshot.Lock != nil)
	p := lifecycle.NewPatch().SetIntent(*t.intent)
	if t.records {
		p.SetModule(t.wanted.Module.Reference())
		p.SetPlace(t.wanted.Place)
	}
	if t.records && (!t.facts.Lost() || t.facts.Inputs == nil) { // else they are those of the run that was lost
		change.Attachments = t.attachments()
	}
	change.Meta = p.MetaPatch
	return change, nil
}

// nextIntent returns the intent of this run, with what is known of an earlier one that was lost. takenOver says that the lock is that of a
// run whose process is dead.
func (t *task) nextIntent(takenOver bool) *lifecycle.Intent {
	now := t.actuator.clock.Now().UTC()
	next := &lifecycle.Intent{Operation: t.decision.Operation, Run: t.id, Since: now, Reason: t.decision.Reason}
	if !t.facts.Lost() || t.facts.ConfirmedAbsent() {
		return next
	}
	next.Lost = t.facts.LostRun()
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
	switch t.decision.Operation {
	case runs.Create:
		return t.create(ctx)
	case runs.Update:
		return t.update(ctx)
	case runs.Drift:
		return t.checkDrift(ctx)
	default:
		return t.destroy(ctx)
	}
}

// create makes the instance. From an empty state the engine can do nothing else, so that is one process; else the plan is read.
func (t *task) create(ctx context.Context) error {
	if t.decision.Lookup {
		if found, err := t.find(ctx); found || err != nil {
			return err
		}
	}
	return t.within(ctx, false, func(folder runner.Workspace) error {
		if t.facts.HasResources() {
			return t.planned(ctx, folder)
		}
		t.touched = true
		report, err := folder.Apply(ctx)
		t.note(report)
		return err
	})
}

// update brings an instance to its providerSpec, in place or not at all. One that the state has lost is found first, or else missed.
func (t *task) update(ctx context.Context) error {
	if t.decision.Lookup {
		found, err := t.find(ctx)
		if err == nil && !found {
			return t.missed("the instance is gone: its state was lost, and the lookup finds none")
		}
		return err
	}
	return t.within(ctx, false, func(folder runner.Workspace) error { return t.planned(ctx, folder) })
}

// missed notes that the instance is gone.
func (t *task) missed(summary string) error {
	t.found = t.dated(lifecycle.DriftCheck{Result: lifecycle.DriftMissing, Summary: summary})
	return actuators.UpdateFailed("%s", summary)
}

// planned plans, reads the plan, and applies it when it does no more than it may.
func (t *task) planned(ctx context.Context, folder runner.Workspace) error {
	report, err := folder.Plan(ctx)
	if refused := lifecycle.RefusedByModule(err); refused != "" && t.decision.Operation == runs.Update {
		return actuators.UnsupportedChange("%s", refused)
	}
	if err != nil {
		return err
	}
	return t.apply(ctx, folder, report)
}

// apply carries a plan out that was read, when it does no more than it may.
func (t *task) apply(ctx context.Context, folder runner.Workspace, report *engine.Report) error {
	ruling := lifecycle.CheckPlan(t.decision.Operation, report, t.facts.Provisioned)
	switch {
	case ruling.Missing != "":
		return t.missed(ruling.Missing) // other differences are what the change asks for, and no drift
	case ruling.Refused != "":
		return actuators.UnsupportedChange("%s", ruling.Refused)
	case !ruling.Changes:
		return nil
	}
	if t.renews {
		// From here on the new module knows what there may be, and the old one does not.
		if err := t.session.Attach(ctx, t.attachments()); err != nil {
			return err
		}
		if err := t.session.SetMeta(ctx, lifecycle.NewPatch().SetModule(t.wanted.Module.Reference()).MetaPatch); err != nil {
			return err
		}
	}
	t.touched = true
	applied, err := folder.ApplyPlan(ctx)
	t.note(applied)
	if err == nil {
		t.found = t.dated(lifecycle.DriftCheck{Result: lifecycle.DriftNone})
	}
	return err
}

// dated returns a check that was made now.
func (t *task) dated(found lifecycle.DriftCheck) *lifecycle.DriftCheck {
	found.At = t.actuator.clock.Now().UTC()
	return &found
}

func (t *task) note(report *engine.Report) {
	if len(report.Applied) > 0 {
		t.changed = true
	}
}

// follow keeps what the engine says of what it makes while it works.
func (t *task) follow(event engine.Event) {
	if event.Action != engine.ActionCreate {
		return
	}
	if event.Kind == engine.EventCompleted {
		delete(t.making, event.Address)
		return
	}
	if t.making == nil {
		t.making = map[string]bool{}
	}
	t.making[event.Address] = true
}

// within opens a folder for the engine, and closes it.
func (t *task) within(ctx context.Context, lookup bool, use func(runner.Workspace) error) (err error) {
	// A process that was stopped since it took the lock may lead no more.
	if err := t.actuator.leader.Confirm(ctx); err != nil {
		return err
	}
	with, err := t.runner(ctx)
	if err != nil {
		return err
	}
	around, err := t.actuator.desired.Environment(ctx, t.wanted.Module)
	if err != nil {
		return err
	}
	t.announce(lookup)
	folder, err := with.Open(ctx, t.run(around, lookup))
	if err != nil {
		return err
	}
	defer func() {
		unsaved, readErr := folder.Unsaved()
		if unsaved {
			t.kept = folder
			return
		}
		err = errors.Join(err, readErr, folder.Close())
	}()
	return use(folder)
}

func (t *task) run(around desired.Environment, lookup bool) runner.RunSpec {
	environment, sensitive := around.With(t.wanted.Inputs.Environment, t.wanted.Inputs.Sensitive)
	return runner.RunSpec{
		ID: t.id,
		Identity: identity{
			Namespace: t.key.Namespace, Name: t.key.Name, UID: string(t.uid), Owner: t.actuator.owner, Run: t.id,
		},
		Module:          t.wanted.Module,
		Session:         t.session,
		Lineage:         string(t.uid),
		Variables:       t.wanted.Inputs.Variables,
		Environment:     environment,
		InitEnvironment: around.Variables,
		Files:           t.wanted.Inputs.Files,
		Sensitive:       sensitive,
		Lookup:          lookup,
		NotFound:        !lookup && t.decision.Lookup && t.lookedUp && !t.imported,
		Progress:        t.follow,
		Output:          t.transcript.add,
	}
}
