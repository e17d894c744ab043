package iac

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/actuators/recovery"
	"github.com/machine-iac/machine-iac-operator/actuators/reporting"
	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/references"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/rights"
	"github.com/machine-iac/machine-iac-operator/internal/desired"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/platform"
	"github.com/machine-iac/machine-iac-operator/internal/module/store"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// minRequeue is the shortest time after which a Machine is reconciled again.
const minRequeue = time.Second

// defaultDriftInterval is how often drift is checked.
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
	Leader recovery.Leader
	// ClusterValues are the defaults of fields that a providerSpec lacks.
	ClusterValues module.ClusterValues
	// DriftInterval is the time between drift checks of an instance, a tenth more or less; an hour when zero.
	DriftInterval time.Duration
	// ModuleUpdates says what becomes of Machines whose module has changed; they are held when empty.
	ModuleUpdates desired.ModuleUpdates
	// Adoption is what is done about instances that something else has made, where neither Machine nor MachineSet says it; nothing when empty.
	Adoption lifecycle.Adoption
	// Environment says how the cluster's infrastructure is reached; as usual when nil.
	Environment desired.EnvironmentReader
	// Cluster reads what modules may know of the cluster; nil where nothing is known.
	Cluster platform.Reader
	// Rights finds out what credentials certainly may not do; nil for nothing.
	Rights *rights.Reader
	// References says which Secrets Machines may use; all of them when nil.
	References *references.Policy
	// Modules keeps the content of modules that Machines were made with; one with the Client when nil.
	Modules *store.Store
	// Clock is the system's when nil.
	Clock clock.PassiveClock
	// Logger gets what no Machine shows; nothing when unset.
	Logger logr.Logger
	// Metrics are counted in; new ones, which are not exported, when nil.
	Metrics *reporting.Metrics
}

// Actuator implements the Machine API's verbs with an engine run per Machine.
type Actuator struct {
	client   client.Client
	recorder events.EventRecorder
	catalog  *module.Catalog
	store    *state.Store
	modules  *store.Store
	desired  *desired.Reader
	runners  map[v1alpha1.Engine]runner.Runner
	pool     *runs.Pool
	owner    string
	leader   recovery.Leader
	interval time.Duration
	clock    clock.PassiveClock
	logger   logr.Logger
	metrics  *reporting.Metrics
	recovery *recovery.Recovery
	owners   instanceOwners
	looks    lifecycle.Looks
	bases    desired.Bases
}

var (
	_ actuators.Actuator          = &Actuator{}
	_ actuators.Rechecker         = &Actuator{}
	_ actuators.UnchangedChecker  = &Actuator{}
	_ actuators.CapacityEstimator = &Actuator{}
	_ actuators.VolumeWaiter      = &Actuator{}
)

// New returns an Actuator. It fails when an option that must be set is missing.
func New(options Options) (*Actuator, error) {
	if options.Client == nil || options.Recorder == nil || options.Catalog == nil || options.Store == nil ||
		len(options.Runners) == 0 || options.Pool == nil || options.Owner == "" || options.Leader == nil {
		return nil, errors.New("making the actuator: an option that must be set is missing")
	}
	options.setDefaults()
	reader, err := desired.NewReader(desired.Options{
		Client: options.Client, Catalog: options.Catalog, Modules: options.Modules, States: options.Store, ClusterValues: options.ClusterValues,
		ModuleUpdates: options.ModuleUpdates, Environment: options.Environment, Cluster: options.Cluster, Rights: options.Rights, Adoption: options.Adoption,
		References: options.References, Clock: options.Clock,
	})
	if err != nil {
		return nil, fmt.Errorf("making the actuator: %w", err)
	}
	return &Actuator{
		client: options.Client, recorder: options.Recorder, catalog: options.Catalog, store: options.Store, modules: options.Modules, desired: reader,
		runners: options.Runners, pool: options.Pool, owner: options.Owner, leader: options.Leader,
		interval: options.DriftInterval, clock: options.Clock, logger: options.Logger, metrics: options.Metrics,
		recovery: recovery.New(recovery.Options{
			Store: options.Store, Runners: options.Runners, Pool: options.Pool, Owner: options.Owner, Leader: options.Leader, Metrics: options.Metrics,
			Logger: options.Logger,
		}),
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
		o.Metrics = reporting.NewMetrics(slices.Sorted(maps.Keys(o.Runners))...)
	}
	if o.Modules == nil {
		o.Modules = store.New(o.Client, store.Options{Clock: o.Clock})
	}
}
