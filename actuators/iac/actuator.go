package iac

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/store"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// shortest is the shortest time after which a Machine is looked at again.
const shortest = time.Second

// inProgress is how soon a Machine is looked at again whose run is under way. The run's end wakes it earlier.
const inProgress = time.Minute

// defaultDriftInterval is how often an instance is compared with what it should be.
const defaultDriftInterval = time.Hour

// Options are what an Actuator works with. All must be set but those that say what they are otherwise.
type Options struct {
	// Client reads and writes the API server itself, never a cache.
	Client   client.Client
	Recorder events.EventRecorder
	Catalog  *module.Catalog
	Store    *state.Store
	// Runners carry runs out, each with the engine that it is filed under. One at least must be there.
	Runners map[v1alpha1.Engine]runner.Runner
	Pool    *runs.Pool
	// Owner identifies this process among those that have held, hold or will hold state locks.
	Owner string
	// Leader says in which epoch this process leads, and whether the engines of another can still act.
	Leader Leader
	// Facts are what is known of the cluster, for the defaults of fields that a providerSpec lacks.
	Facts module.ClusterValues
	// DriftInterval is the time between drift checks of an instance, a tenth more or less; an hour when zero.
	DriftInterval time.Duration
	// ModuleUpdates says what becomes of Machines whose module has changed; they are held when empty.
	ModuleUpdates ModuleUpdates
	// Surroundings tell what runs see of the cluster; nothing when nil.
	Surroundings Surroundings
	// Modules keeps the content of modules that Machines were made with; one with the Client when nil.
	Modules *store.Store
	// Clock is the system's when nil.
	Clock clock.PassiveClock
	// Logger gets what no Machine shows; nothing when unset.
	Logger logr.Logger
	// Metrics are counted in; new ones, which nobody sees, when nil.
	Metrics *Metrics
}

// Actuator implements the Machine API's verbs with an engine run per Machine.
type Actuator struct {
	reader
	writer   client.Client
	recorder events.EventRecorder
	runners  map[v1alpha1.Engine]runner.Runner
	pool     *runs.Pool
	owner    string
	leader   Leader
	interval time.Duration
	clock    clock.PassiveClock
	logger   logr.Logger
	metrics  *Metrics
	// left are runs whose folders were left behind; recovering is held while one is dealt with.
	left       leftRuns
	recovering sync.Mutex
}

// Leader is what the actuator needs to know of leadership: see package leadership.
type Leader interface {
	// Epoch is the epoch that this process leads in.
	Epoch() state.Epoch
	// Confirm returns nil while this process leads.
	Confirm(ctx context.Context) error
	// DeadIn returns in how long the engines of an epoch can act no more; zero for now.
	DeadIn(ctx context.Context, held state.Epoch) (time.Duration, error)
}

var (
	_ actuators.Actuator          = &Actuator{}
	_ actuators.Rechecker         = &Actuator{}
	_ actuators.CapacityEstimator = &Actuator{}
)

// New makes an Actuator. It fails when an option that must be set is missing.
func New(options Options) (*Actuator, error) {
	if options.Client == nil || options.Recorder == nil || options.Catalog == nil || options.Store == nil ||
		len(options.Runners) == 0 || options.Pool == nil || options.Owner == "" || options.Leader == nil {
		return nil, errors.New("making the actuator: an option that must be set is missing")
	}
	options.setDefaults()
	if err := options.ModuleUpdates.check(); err != nil {
		return nil, fmt.Errorf("making the actuator: %w", err)
	}
	return &Actuator{
		reader: reader{
			client: options.Client, catalog: options.Catalog, store: options.Store, modules: options.Modules, updates: options.ModuleUpdates,
			facts: options.Facts, around: options.Surroundings,
		},
		writer: options.Client, recorder: options.Recorder, runners: options.Runners, pool: options.Pool, owner: options.Owner, leader: options.Leader,
		interval: options.DriftInterval, clock: options.Clock, logger: options.Logger, metrics: options.Metrics,
	}, nil
}

func (o *Options) setDefaults() {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.DriftInterval == 0 {
		o.DriftInterval = defaultDriftInterval
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics(slices.Sorted(maps.Keys(o.Runners))...)
	}
	if o.Modules == nil {
		o.Modules = store.New(o.Client, store.Options{Clock: o.Clock})
	}
	if o.ModuleUpdates == "" {
		o.ModuleUpdates = ModuleUpdatesHold
	}
}

// Exists implements actuators.Actuator. It is decided from the state and what was last seen of the instance, and is an UncertainError where
// neither says anything.
func (a *Actuator) Exists(ctx context.Context, machine *machinev1beta1.Machine) (bool, error) {
	f, err := a.gather(ctx, machine)
	switch {
	case err != nil:
		return false, err
	case f.exists():
		return true, nil
	case f.missing():
		r := newReport(machine)
		a.publishCheck(&r.status, f)
		r.write()
		return false, nil
	case f.destroyed() || !f.provisioned || f.lost() && f.confirmedAbsent():
		return false, nil
	case f.foreign():
		return false, a.notOurs(f)
	}
	return false, a.stateLost(f)
}

// Create implements actuators.Actuator.
func (a *Actuator) Create(ctx context.Context, machine *machinev1beta1.Machine) error {
	r := newReport(machine)
	defer r.write()
	err := a.create(ctx, r)
	if failed, ok := errors.AsType[*actuators.MachineError](err); ok {
		r.failedCreation(failed.Message, a.clock.Now())
	}
	return err
}

func (a *Actuator) create(ctx context.Context, r *report) error {
	f, err := a.gather(ctx, r.machine)
	if err != nil {
		return err
	}
	wanted, _, err := a.want(ctx, r.machine, f, runs.Create)
	if err != nil {
		a.failed(runs.Create, r.machine, err)
		return err
	}
	return a.carryOut(r, wanted, f, decide(runs.Create, f, a.means(r.machine, f, wanted)))
}

// Delete implements actuators.Actuator.
func (a *Actuator) Delete(ctx context.Context, machine *machinev1beta1.Machine) error {
	if waiting, known := a.pool.Status(machine.UID); known && waiting.Phase == runs.Queued && waiting.Operation != runs.Destroy {
		a.pool.Cancel(machine.UID)
	}
	f, err := a.gather(ctx, machine)
	if err != nil {
		return err
	}
	r := newReport(machine)
	defer r.write()
	wanted, _, err := a.want(ctx, machine, f, runs.Destroy)
	d := decide(runs.Destroy, f, a.means(machine, f, wanted))
	switch {
	case d.action == done:
		a.metrics.forget(machine)
	case d.action != await && d.action != foreign && err != nil && (f.resources() || f.lost()):
		err = undeletable(f, err)
		a.failed(runs.Destroy, machine, err)
		return err
	}
	return a.carryOut(r, wanted, f, d)
}

// want returns what a Machine asks for with an operation, and why that is not the module that it may get.
func (r *reader) want(ctx context.Context, machine *machinev1beta1.Machine, f *facts, operation runs.Operation) (*desired, *actuators.MachineError, error) {
	switch {
	case f.foreign():
		return nil, nil, nil
	case operation == runs.Destroy:
		wanted, err := r.desireLast(ctx, machine, f)
		return wanted, nil, err
	case f.lost():
		wanted, err := r.desireLost(ctx, machine, f, operation)
		return wanted, nil, err
	case operation == runs.Create:
		wanted, err := r.desireOwn(ctx, machine, f, operation)
		return wanted, nil, err
	}
	c, err := r.choices(ctx, machine, f)
	if err != nil {
		return nil, nil, err
	}
	p := r.prospects(ctx, machine, c)
	wanted, withheld := p.choose(f)
	if wanted == nil && withheld == nil {
		return nil, nil, p.ownErr
	}
	return wanted, withheld, nil
}

// means returns what can be done about a Machine now.
func (a *Actuator) means(machine *machinev1beta1.Machine, f *facts, wanted *desired) means {
	now := a.clock.Now()
	m := means{now: now, fingerprint: wanted.of(), due: upkeep{
		check: a.checkDue(machine, f, now), repair: repairDue(f, a.interval, now), second: f.record.Second != nil && !now.Before(*f.record.Second),
	}}
	if wanted != nil {
		m.lookup, m.settle = len(wanted.module.LookupFiles()) > 0, wanted.module.Settle()
	}
	return m
}

// carryOut does what a verb has decided and returns the verb's error.
func (a *Actuator) carryOut(r *report, wanted *desired, f *facts, d decision) error {
	switch d.action {
	case await:
		return a.underWay(r, *f.run)
	case start:
		return a.start(r, wanted, d)
	}
	if err := a.undone(f, d); !errors.Is(err, runs.ErrNothingToDo) {
		r.status.Run = nil
		return err
	}
	return nil
}

// undone returns why a decision that starts no run does not: runs.ErrNothingToDo where there is nothing to do.
func (a *Actuator) undone(f *facts, d decision) error {
	switch d.action {
	case later:
		return actuators.InProgress(max(shortest, d.until.Sub(a.clock.Now())), "%s; it is looked for again after %s", d.reason, d.until.UTC().Format(time.RFC3339))
	case refuse:
		return actuators.UnsupportedChange("%s", f.record.Refusal.Message).In(inProgress)
	case unresolved:
		return a.unresolved(f, d.operation)
	case foreign:
		return a.notOurs(f)
	default:
		return runs.ErrNothingToDo
	}
}

// start submits a run and returns that it is under way.
func (a *Actuator) start(r *report, wanted *desired, d decision) error {
	request := runs.Request{
		Machine:     client.ObjectKeyFromObject(r.machine),
		UID:         r.machine.UID,
		Group:       groupOf(r.machine),
		Operation:   d.operation,
		Engine:      wanted.engine(),
		Fingerprint: wanted.of(),
		Task:        newTask(a, r.machine, d.operation),
	}
	if wanted != nil && wanted.credentialsSecret != "" {
		request.Credential = r.machine.Namespace + "/" + wanted.credentialsSecret
	}
	status, err := a.pool.Submit(request)
	if err != nil {
		return actuators.InProgress(inProgress, "%s", err.Error())
	}
	switch {
	case d.operation == runs.Drift:
		return nil
	case status.Phase == runs.Failed:
		return a.reported(r, &status)
	}
	a.warn(r.machine, wanted, d.operation)
	return a.underWay(r, status)
}

// warn tells, when a run begins, what it lacks of what it should have, and what is doubtful in the providerSpec.
func (a *Actuator) warn(machine *machinev1beta1.Machine, wanted *desired, operation runs.Operation) {
	if wanted != nil {
		for _, one := range wanted.notices {
			one.Send(a.recorder)
		}
	}
	if operation != runs.Create && operation != runs.Update {
		return
	}
	for _, warning := range wanted.inputs.Warnings {
		told := ignoredField
		if warning.Advice {
			told = doubtful
		}
		told(machine, warning.String()).Send(a.recorder)
	}
}

// underWay returns that a run waits or runs, and notes it in the provider status.
func (a *Actuator) underWay(r *report, status runs.Status) error {
	operation := map[runs.Operation]v1alpha1.RunOperation{
		runs.Create: v1alpha1.RunCreate, runs.Update: v1alpha1.RunUpdate,
		runs.Drift: v1alpha1.RunDriftCheck, runs.Destroy: v1alpha1.RunDestroy,
	}[status.Operation]
	told := &v1alpha1.RunStatus{Operation: operation, QueuedAt: seconds(status.QueuedAt)}
	if status.Phase == runs.Running {
		told.StartedAt = seconds(status.StartedAt)
	}
	r.status.Run = told
	if status.Err != nil {
		return actuators.InProgress(inProgress, "an engine run is under way to %s it, after %d that failed: %s", status.Operation, status.Failures, status.Err)
	}
	return actuators.InProgress(inProgress, "an engine run is under way to %s it", status.Operation)
}

// seconds is a time as it is stored, so that a status is not written again for the rest of it.
func seconds(at time.Time) *metav1.Time {
	stored := metav1.NewTime(at.Truncate(time.Second))
	return &stored
}

// reported returns the error of a failed run, with the time until it is repeated.
func (a *Actuator) reported(r *report, status *runs.Status) error {
	r.status.Run = nil
	after := max(shortest, status.RetryAt.Sub(a.clock.Now()))
	err := asMachineError(status.Operation, status.Err)
	if failed, ok := errors.AsType[*actuators.MachineError](err); ok {
		return failed.In(after)
	}
	if waiting, ok := actuators.AsRequeueAfter(err); ok {
		return actuators.InProgress(after, "%s", waiting.Reason)
	}
	if _, uncertain := actuators.AsUncertain(err); uncertain {
		return err
	}
	return actuators.InProgress(after, "%s", err.Error())
}

// failed tells that an operation failed. Waiting is no failure.
func (a *Actuator) failed(operation runs.Operation, machine *machinev1beta1.Machine, cause error) {
	_, waiting := actuators.AsRequeueAfter(cause)
	_, uncertain := actuators.AsUncertain(cause)
	if waiting || uncertain {
		return
	}
	failedTo(operation, machine, typed(operation, cause)).Send(a.recorder)
	a.metrics.failed(operation, machine, reasonOf(operation, cause))
}

// groupOf answers what runs are shared out fairly between: the Machine's controller, or the namespace for one without.
func groupOf(machine *machinev1beta1.Machine) string {
	if owner := metav1.GetControllerOf(machine); owner != nil {
		return string(owner.UID)
	}
	return machine.Namespace
}

// of answers the fingerprint, empty for a Machine that cannot be rendered.
func (d *desired) of() string {
	if d == nil {
		return ""
	}
	return d.fingerprint
}
