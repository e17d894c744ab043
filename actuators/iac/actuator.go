package iac

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
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
	"github.com/machine-iac/machine-iac-operator/internal/modulestore"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

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
	// Facts are what is known of the cluster, for the defaults of fields that a providerSpec lacks.
	Facts module.Facts
	// Dead answers whether the process with that identity is proven not to run any more.
	Dead func(owner string) bool
	// DriftInterval is the time between drift checks of an instance, a tenth more or less; an hour when zero.
	DriftInterval time.Duration
	// ModuleUpdates says what becomes of Machines whose module has changed; they are held when empty.
	ModuleUpdates ModuleUpdates
	// Surroundings tell what runs see of the cluster; nothing when nil.
	Surroundings Surroundings
	// Modules keeps the content of modules that Machines were made with; one with the Client when nil.
	Modules *modulestore.Store
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
	recorder events.EventRecorder
	around   Surroundings
	runners  map[v1alpha1.Engine]runner.Runner
	pool     *runs.Pool
	owner    string
	dead     func(owner string) bool
	interval time.Duration
	clock    clock.PassiveClock
	logger   logr.Logger
	metrics  *Metrics
}

var (
	_ actuators.Actuator          = &Actuator{}
	_ actuators.Rechecker         = &Actuator{}
	_ actuators.CapacityEstimator = &Actuator{}
)

// New makes an Actuator. It fails when an option that must be set is missing.
func New(options Options) (*Actuator, error) {
	if options.Client == nil || options.Recorder == nil || options.Catalog == nil || options.Store == nil ||
		len(options.Runners) == 0 || options.Pool == nil || options.Owner == "" || options.Dead == nil {
		return nil, errors.New("making the actuator: an option that must be set is missing")
	}
	options.setDefaults()
	if err := options.ModuleUpdates.check(); err != nil {
		return nil, fmt.Errorf("making the actuator: %w", err)
	}
	return &Actuator{
		reader: reader{
			client: options.Client, catalog: options.Catalog, store: options.Store, modules: options.Modules, updates: options.ModuleUpdates,
			facts: options.Facts,
		},
		recorder: options.Recorder, runners: options.Runners, pool: options.Pool, owner: options.Owner, around: options.Surroundings, dead: options.Dead,
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
		o.Modules = modulestore.New(o.Client, modulestore.Options{Clock: o.Clock})
	}
	if o.ModuleUpdates == "" {
		o.ModuleUpdates = ModuleUpdatesHold
	}
}

// Exists implements actuators.Actuator. It answers from the state and the last drift check, and tells what that found missing.
func (a *Actuator) Exists(ctx context.Context, machine *machinev1beta1.Machine) (bool, error) {
	f, err := a.gather(ctx, machine)
	if err != nil {
		return false, err
	}
	if !f.exists() && f.record.Check != nil {
		setProviderStatus(machine, func(s *v1alpha1.TerraformMachineProviderStatus) { a.publishCheck(s, f) })
	}
	return f.exists(), nil
}

// Create implements actuators.Actuator.
func (a *Actuator) Create(ctx context.Context, machine *machinev1beta1.Machine) error {
	err := a.create(ctx, machine)
	if failed, ok := errors.AsType[*actuators.MachineError](err); ok {
		publishFailedCreation(machine, failed.Message, a.clock.Now())
	}
	return err
}

func (a *Actuator) create(ctx context.Context, machine *machinev1beta1.Machine) error {
	f, err := a.gather(ctx, machine)
	if err != nil {
		return err
	}
	wanted, err := a.desireOwn(ctx, machine, f, runs.Create)
	if err != nil {
		a.failed(runs.Create, machine, err)
		return err
	}
	return a.carryOut(machine, wanted, f, decideCreate(f, canLookUp(wanted)))
}

// Delete implements actuators.Actuator.
func (a *Actuator) Delete(ctx context.Context, machine *machinev1beta1.Machine) error {
	f, err := a.gather(ctx, machine)
	if err != nil {
		return err
	}
	wanted, err := a.desireLast(ctx, machine, f)
	d := decideDelete(f, canLookUp(wanted))
	switch {
	case d.action == done:
		a.metrics.forget(machine)
	case d.action != await && err != nil && (f.resources() || f.lost()):
		err = undeletable(f, err)
		a.failed(runs.Destroy, machine, err)
		return err
	}
	return a.carryOut(machine, wanted, f, d)
}

// RecheckAfter implements actuators.Rechecker: the next check.
func (a *Actuator) RecheckAfter(machine *machinev1beta1.Machine) time.Duration {
	last := readProviderStatus(machine).LastDriftCheckTime
	if last == nil {
		return 0
	}
	after, wanted := a.checkAfter(machine, last.Time)
	if !wanted {
		return 0
	}
	return max(time.Second, last.Add(after).Sub(a.clock.Now()))
}

func (a *Actuator) upkeepDue(machine *machinev1beta1.Machine, f *facts) upkeep {
	now := a.clock.Now()
	return upkeep{check: a.checkDue(machine, f, now), repair: repairDue(f, a.interval, now)}
}

func (a *Actuator) checkDue(machine *machinev1beta1.Machine, f *facts, now time.Time) bool {
	if f.record.Check == nil {
		return f.drift.policy != v1alpha1.DriftIgnore
	}
	after, wanted := a.checkAfter(machine, f.record.Check.At)
	return wanted && !now.Before(f.record.Check.At.Add(after))
}

// checkAfter answers how long after its last check an instance is checked again, and whether it is at all. One that has told no address
// is looked at soon, also where drift is ignored: guests tell theirs once they run.
func (a *Actuator) checkAfter(machine *machinev1beta1.Machine, last time.Time) (after time.Duration, wanted bool) {
	interval := driftAfter(a.interval, string(machine.UID))
	soon := addressesAfter(last.Sub(madeAt(machine, last)))
	if !hasIP(machine.Status.Addresses) && soon < interval {
		return soon, true
	}
	return interval, driftOf(machine).policy != v1alpha1.DriftIgnore
}

// carryOut does what was decided and answers the verb's error.
func (a *Actuator) carryOut(machine *machinev1beta1.Machine, wanted *desired, f *facts, d decision) error {
	switch d.action {
	case await:
		return a.underWay(machine, *f.run)
	case start:
		return a.start(machine, wanted, f, d)
	case refuse:
		return actuators.UnsupportedChange("%s", f.record.Refusal.Message).In(inProgress)
	case unreachable:
		return actuators.DeleteFailed("the Secret with the Machine's state is gone, and its module has no lookup to find the instance without it; "+
			"restore Secret %s, or remove the instance by hand and then the Machine's finalizer", state.KeyFor(machine.Namespace, machine.UID)).In(inProgress)
	default:
		return nil
	}
}

// start submits a run and answers that it is under way.
func (a *Actuator) start(machine *machinev1beta1.Machine, wanted *desired, f *facts, d decision) error {
	status, err := a.pool.Submit(runs.Request{
		Machine:     client.ObjectKeyFromObject(machine),
		UID:         machine.UID,
		Group:       groupOf(machine),
		Operation:   d.operation,
		Engine:      wanted.engine(),
		Fingerprint: wanted.of(),
		Task:        newTask(a, machine, wanted, f, d),
	})
	if err != nil {
		return actuators.InProgress(inProgress, "%s", err.Error())
	}
	switch {
	case d.operation == runs.Drift:
		return nil
	case status.Phase == runs.Failed:
		return a.reported(machine, &status)
	}
	a.warn(machine, wanted, d.operation)
	return a.underWay(machine, status)
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

// underWay answers that a run waits or runs, and notes it in the provider status.
func (a *Actuator) underWay(machine *machinev1beta1.Machine, status runs.Status) error {
	operation := map[runs.Operation]v1alpha1.RunOperation{
		runs.Create: v1alpha1.RunCreate, runs.Update: v1alpha1.RunUpdate,
		runs.Drift: v1alpha1.RunDriftCheck, runs.Destroy: v1alpha1.RunDestroy,
	}[status.Operation]
	told := &v1alpha1.RunStatus{Operation: operation, QueuedAt: seconds(status.QueuedAt)}
	if status.Phase == runs.Running {
		told.StartedAt = seconds(status.StartedAt)
	}
	setProviderStatus(machine, func(s *v1alpha1.TerraformMachineProviderStatus) { s.Run = told })
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

// reported answers the error of a failed run, with the time until it is repeated.
func (a *Actuator) reported(machine *machinev1beta1.Machine, status *runs.Status) error {
	setProviderStatus(machine, func(s *v1alpha1.TerraformMachineProviderStatus) { s.Run = nil })
	after := max(time.Second, status.RetryAt.Sub(a.clock.Now()))
	var machineError *actuators.MachineError
	if !errors.As(status.Err, &machineError) {
		machineError = typed(status.Operation, status.Err)
	}
	return machineError.In(after)
}

// failed tells that an operation failed. Waiting is no failure.
func (a *Actuator) failed(operation runs.Operation, machine *machinev1beta1.Machine, cause error) {
	if _, waiting := actuators.AsRequeueAfter(cause); waiting {
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

func canLookUp(wanted *desired) bool { return wanted != nil && len(wanted.module.LookupFiles()) > 0 }

// of answers the fingerprint, empty for a Machine that cannot be rendered.
func (d *desired) of() string {
	if d == nil {
		return ""
	}
	return d.fingerprint
}
