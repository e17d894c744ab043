package iac

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
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
	"github.com/machine-iac/machine-iac-operator/internal/adoption"
	"github.com/machine-iac/machine-iac-operator/internal/bootstrap"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/references"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/rights"
	"github.com/machine-iac/machine-iac-operator/internal/desired"
	"github.com/machine-iac/machine-iac-operator/internal/installation"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/store"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// minRequeue is the minimum delay before a Machine is reconciled again.
const minRequeue = time.Second

// defaultDriftInterval is the default of Options.DriftInterval.
const defaultDriftInterval = time.Hour

// Options configures an Actuator. All are required unless a default is named.
type Options struct {
	// Client reads and writes the API server directly, not a cache.
	Client   client.Client
	Recorder events.EventRecorder
	Catalog  *module.Catalog
	Store    *state.Store
	// Runners execute runs, by engine. At least one is required.
	Runners map[v1alpha1.Engine]runner.Runner
	Pool    *runs.Pool
	// Owner identifies this process in state locks.
	Owner string
	// Leader reports the epoch in which this process leads, and whether another process's engines
	// can still act.
	Leader recovery.Leader
	// Installation signs annotations on Machines; by default it lasts as long as the process.
	Installation *installation.Installation
	// Bootstrap fills in placeholders of user data and makes bootstrap tokens; nil leaves them.
	Bootstrap *bootstrap.Tokens
	// ClusterValues are the defaults of fields that a providerSpec omits.
	ClusterValues module.ClusterValues
	// DriftInterval is the interval between an instance's drift checks, plus or minus a tenth;
	// ModuleUpdates says how a changed module reaches existing Machines; default is to hold the
	// update.
	DriftInterval time.Duration
	// ModuleUpdates says how a changed module reaches existing Machines; default is to hold the
	// update.
	ModuleUpdates desired.ModuleUpdates
	// Adoption says which existing instances may be adopted; default none.
	Adoption adoption.Rules
	// Environment says how to reach the cluster's infrastructure; default is the usual way.
	Environment desired.EnvironmentReader
	// Cluster reads what modules may know about the cluster; nil for nothing.
	Cluster module.ClusterReader
	// Rights detects missing permissions of credentials; nil to skip.
	Rights *rights.Reader
	// References says which Secrets Machines may use; nil allows all.
	References *references.Policy
	// Modules stores the modules that created Machines; default is a store that uses Client.
	Modules *store.Store
	// Clock defaults to the system clock.
	Clock clock.PassiveClock
	// Logger logs what no Machine shows; default is to discard.
	Logger logr.Logger
	// Metrics defaults to metrics that are not exported.
	Metrics *reporting.Metrics
}

// Actuator implements the Machine API's verbs with one engine run per Machine.
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
	looks    lifecycle.Looks
	bases    desired.Bases
	// installation signs annotations on Machines.
	installation *installation.Installation
	bootstrap    *bootstrap.Tokens
	// searched holds the UIDs of Machines for which this term's lookup has settled whether an
	// earlier instance exists.
	searched sync.Map
	sizes    sizes
}

var (
	_ actuators.Actuator          = &Actuator{}
	_ actuators.Rechecker         = &Actuator{}
	_ actuators.UnchangedChecker  = &Actuator{}
	_ actuators.CapacityEstimator = &Actuator{}
	_ actuators.VolumeWaiter      = &Actuator{}
)

// New returns an Actuator, or an error if a required option is missing.
func New(options Options) (*Actuator, error) {
	if options.Client == nil || options.Recorder == nil || options.Catalog == nil || options.Store == nil ||
		len(options.Runners) == 0 || options.Pool == nil || options.Owner == "" || options.Leader == nil {
		return nil, errors.New("creating the actuator: a required option is missing")
	}
	options.setDefaults()
	reader, err := desired.NewReader(desired.Options{
		Client: options.Client, Catalog: options.Catalog, Modules: options.Modules, States: options.Store,
		ClusterValues: options.ClusterValues,
		ModuleUpdates: options.ModuleUpdates, Environment: options.Environment, Cluster: options.Cluster,
		Rights: options.Rights, Adoption: options.Adoption,
		References: options.References, Installation: options.Installation, Bootstrap: options.Bootstrap,
		Clock: options.Clock,
	})
	if err != nil {
		return nil, fmt.Errorf("creating the actuator: %w", err)
	}
	return &Actuator{
		client: options.Client, recorder: options.Recorder, catalog: options.Catalog, store: options.Store,
		modules: options.Modules, desired: reader,
		runners: options.Runners, pool: options.Pool, owner: options.Owner, leader: options.Leader,
		installation: options.Installation, bootstrap: options.Bootstrap, interval: options.DriftInterval,
		clock: options.Clock, logger: options.Logger, metrics: options.Metrics,
		recovery: recovery.New(recovery.Options{
			Store: options.Store, Runners: options.Runners, Pool: options.Pool, Owner: options.Owner, Leader: options.Leader,
			Metrics: options.Metrics,
			Logger:  options.Logger,
		}),
	}, nil
}

func (o *Options) setDefaults() {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Installation == nil {
		o.Installation = installation.Generate()
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
