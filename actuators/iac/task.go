package iac

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/internal/engine"
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

// task is one engine run for one Machine.
type task struct {
	actuator *Actuator
	machine  *machinev1beta1.Machine
	wanted   *desired
	decision decision
	id       string
	// empty says that the state knew of no resource, provisioned that the Machine has had an instance, when the run was decided.
	empty, provisioned bool
	// remembers says that the state has no inputs with it.
	remembers bool
	// repaired is the last repair of the instance, nil for none.
	repaired *repair
	// renews says that an update is to bring the instance to another module than its own, records that none is recorded yet.
	renews, records bool

	session *state.Session
	// transcript is what the engine tells.
	transcript transcript
	// found is what the run learned of the instance, nil for nothing.
	found *check
	// changed says that the run has changed infrastructure.
	changed bool
	// making says that the engine has begun to make the instance and has not said that it is made.
	making bool
	// lookedUp says that a lookup has told whether there is an instance.
	lookedUp bool
	// kept is the folder with a state that the engine could not save, until it is saved.
	kept runner.Folder
}

var _ runs.Task = &task{}

func newTask(a *Actuator, machine *machinev1beta1.Machine, wanted *desired, f *facts, d decision) *task {
	update := d.operation == runs.Update
	return &task{
		actuator: a, machine: machine.DeepCopy(), wanted: wanted, decision: d, id: string(uuid.NewUUID()),
		empty: !f.resources(), provisioned: f.provisioned, repaired: f.record.Repair, remembers: f.inputs == nil,
		renews:  update && f.record.Module != "" && f.record.Module != wanted.module.Reference(),
		records: d.operation == runs.Create || update && f.record.Module == "",
	}
}

// Intend implements runs.Task: one write takes the lock and records the intent. A drift check has none: it changes nothing. The module
// is kept before anything can be made with it.
func (t *task) Intend(ctx context.Context) error {
	a := t.actuator
	if t.records || t.renews {
		if err := a.modules.Keep(ctx, t.machine.Namespace, t.wanted.module); err != nil {
			return typed(t.decision.operation, err)
		}
	}
	options := state.AcquireOptions{
		Lock:        state.Lock{Owner: a.owner, Run: t.id, Operation: string(t.decision.operation)},
		Labels:      map[string]string{state.LabelMachineUID: string(t.machine.UID)},
		Annotations: map[string]string{state.AnnotationMachine: t.machine.Name},
	}
	if t.decision.operation != runs.Drift {
		intended := newPatch().intend(intent{Operation: t.decision.operation, Run: t.id, Since: a.clock.Now().UTC()})
		if t.records {
			intended.made(t.wanted.module.Reference())
		}
		if t.decision.operation == runs.Create {
			options.Attachments = t.attachments()
		}
		options.Meta = intended.MetaPatch
	}
	session, err := a.acquire(ctx, state.KeyFor(t.machine.Namespace, t.machine.UID), options)
	if err != nil {
		return typed(t.decision.operation, err)
	}
	t.session = session
	return nil
}

// acquire takes a state's lock, and takes it over from a process that is proven dead. A lock of this very process is dead as well:
// the pool holds one run per Machine, and that is the caller's.
func (a *Actuator) acquire(ctx context.Context, key state.Key, options state.AcquireOptions) (*state.Session, error) {
	session, err := a.store.Acquire(ctx, key, options)
	locked, ok := errors.AsType[*state.LockedError](err)
	if !ok || locked.Lock.Owner != a.owner && !a.dead(locked.Lock.Owner) {
		return session, err
	}
	a.logger.Info("Taking over the lock of a run that is dead", "state", key.String(), "lock", locked.Lock.String())
	options.Break = &locked.Lock
	return a.store.Acquire(ctx, key, options)
}

// Execute implements runs.Task.
func (t *task) Execute(ctx context.Context) error {
	if t.decision.operation == runs.Destroy && t.empty && !t.decision.lookup {
		return nil
	}
	switch t.decision.operation {
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
	if t.decision.lookup {
		if adopted, err := t.adopt(ctx); adopted || err != nil {
			return err
		}
	}
	return t.within(ctx, false, func(folder runner.Folder) error {
		if !t.empty {
			return t.planned(ctx, folder)
		}
		report, err := folder.Apply(ctx)
		t.note(report)
		return err
	})
}

// adopt brings an instance into the state that a lost run may have made. It answers false when there is none. One of somebody else
// stands in the way of a create; a destroy leaves it alone.
func (t *task) adopt(ctx context.Context) (adopted bool, err error) {
	err = t.within(ctx, true, func(folder runner.Folder) error {
		err := t.planned(ctx, folder)
		if _, foreign := errors.AsType[*foreignError](err); foreign && t.decision.operation == runs.Destroy || runner.Absent(err, t.wanted.module) {
			return nil
		}
		adopted = err == nil
		return err
	})
	t.lookedUp = err == nil
	return adopted, err
}

// update brings an instance to its providerSpec, in place or not at all.
func (t *task) update(ctx context.Context) error {
	return t.within(ctx, false, func(folder runner.Folder) error { return t.planned(ctx, folder) })
}

// planned plans, reads the plan, and applies it when it does no more than it may.
func (t *task) planned(ctx context.Context, folder runner.Folder) error {
	report, err := folder.Plan(ctx)
	if broken := brokenConditions(err); broken != "" && t.decision.operation == runs.Update {
		return actuators.UnsupportedChange("%s", notInPlace(broken))
	}
	if err != nil {
		return err
	}
	if report.Planned.Import > 0 {
		if err := t.ours(ctx, folder); err != nil {
			return err
		}
	}
	ruling := rule(t.decision.operation, report, t.provisioned)
	switch {
	case ruling.Missing != "":
		// Other differences are what the change asks for, and no drift.
		t.found = t.dated(check{Verdict: verdictMissing, Summary: ruling.Missing})
		return actuators.UpdateFailed("%s", ruling.Missing)
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
		if err := t.session.SetMeta(ctx, newPatch().made(t.wanted.module.Reference()).MetaPatch); err != nil {
			return err
		}
	}
	applied, err := folder.ApplyPlan(ctx)
	t.note(applied)
	if err == nil {
		t.found = t.dated(check{Verdict: verdictNone})
	}
	return err
}

// foreignError says that a lookup found an instance of somebody else.
type foreignError struct{ address, uid string }

// Error implements error.
func (e *foreignError) Error() string {
	return fmt.Sprintf("an instance is there already that does not belong to this Machine: what the lookup found for %s nowhere has the Machine's UID %s; "+
		"remove it, or rename the Machine", e.address, e.uid)
}

// ours refuses a plan that would take over an object that bears no sign of the Machine: a lookup by name finds another's as well, and
// a destroy would then remove it.
func (t *task) ours(ctx context.Context, folder runner.Folder) error {
	imported, err := folder.Imported(ctx)
	if err != nil {
		return err
	}
	for address, object := range imported {
		if !bytes.Contains(object, []byte(t.machine.UID)) {
			return &foreignError{address: address, uid: string(t.machine.UID)}
		}
	}
	return nil
}

// checkDrift compares the instance with its state. Outputs that changed by themselves are taken over: no resource is touched.
func (t *task) checkDrift(ctx context.Context) error {
	return t.within(ctx, false, func(folder runner.Folder) error {
		report, err := folder.Plan(ctx)
		if err != nil {
			return err
		}
		t.found = t.dated(judge(report))
		if !report.OutputsOnly() {
			return nil
		}
		_, err = folder.ApplyPlan(ctx)
		return err
	})
}

// dated answers a check that was made now.
func (t *task) dated(found check) *check {
	found.At = t.actuator.clock.Now().UTC()
	return &found
}

// judge answers what a plan over a settled state tells of the instance.
func judge(report *engine.Report) check {
	for _, gone := range report.Vanished() {
		if isInstanceAddress(gone.Address) {
			return check{Verdict: verdictMissing, Summary: fmt.Sprintf("the instance %s is gone: it was removed outside of this operator", gone.Address)}
		}
	}
	var differences []string
	for _, change := range report.Changes {
		if change.Action != engine.ActionNoOp && change.Action != engine.ActionRead {
			differences = append(differences, describe(change))
		}
	}
	if len(differences) == 0 {
		return check{Verdict: verdictNone}
	}
	return check{Verdict: verdictChanged, Summary: "the instance is not as it was made: to bring it back, " + strings.Join(differences, ", ")}
}

// destroy removes the instance and all that was made with it. A destroy can do nothing else, so its plan is not read.
func (t *task) destroy(ctx context.Context) error {
	if t.decision.lookup {
		if adopted, err := t.adopt(ctx); err != nil || !adopted && t.empty {
			return err
		}
	}
	return t.within(ctx, false, func(folder runner.Folder) error {
		report, err := folder.Destroy(ctx)
		t.note(report)
		return err
	})
}

func (t *task) note(report *engine.Report) {
	if len(report.Applied) > 0 {
		t.changed = true
	}
}

// follow keeps what the engine tells of the instance while it works.
func (t *task) follow(event engine.Event) {
	if event.Action == engine.ActionCreate && isInstanceAddress(event.Address) {
		t.making = event.Kind != engine.EventCompleted
	}
}

// within opens a folder for the engine, and closes it.
func (t *task) within(ctx context.Context, lookup bool, use func(runner.Folder) error) (err error) {
	with, err := t.runner(ctx)
	if err != nil {
		return err
	}
	around, err := t.actuator.look(ctx, t.wanted.module)
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

func (t *task) run(around surroundings, lookup bool) runner.Run {
	environment, sensitive := around.with(t.wanted.inputs.Environment, t.wanted.inputs.Sensitive)
	return runner.Run{
		ID: t.id,
		Identity: identity{
			Namespace: t.machine.Namespace, Name: t.machine.Name, UID: string(t.machine.UID), Owner: t.actuator.owner, Run: t.id,
		},
		Module:      t.wanted.module,
		Session:     t.session,
		Lineage:     string(t.machine.UID),
		Variables:   t.wanted.inputs.Variables,
		Environment: environment,
		Reach:       around.environment,
		Files:       t.wanted.inputs.Files,
		Sensitive:   sensitive,
		Lookup:      lookup,
		NotFound:    !lookup && t.decision.lookup && t.lookedUp,
		Progress:    t.follow,
		Output:      t.transcript.add,
	}
}
