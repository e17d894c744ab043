package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/machine-iac/machine-iac-operator/actuators/iac"
	"github.com/machine-iac/machine-iac-operator/actuators/orphans"
	"github.com/machine-iac/machine-iac-operator/actuators/reporting"
	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/config"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/rights"
	"github.com/machine-iac/machine-iac-operator/internal/engine/memory"
	"github.com/machine-iac/machine-iac-operator/internal/leadership"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/internal/module/source"
	"github.com/machine-iac/machine-iac-operator/internal/module/store"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/modules"
	"github.com/machine-iac/machine-iac-operator/stacks"
)

// run serves until ctx ends.
func run(ctx context.Context, o options) error {
	config, err := restConfig(o)
	if err != nil {
		return err
	}
	catalog, err := loadModules(ctx, o)
	if err != nil {
		return fmt.Errorf("loading the provider modules: %w", err)
	}
	hooks, err := newHooks(o)
	if err != nil {
		return err
	}
	leader, err := newLeading(ctx, config, o)
	if err != nil {
		return err
	}
	mgr, err := newManager(config, hooks.server, leader.Leadership, o)
	if err != nil {
		return err
	}
	live, err := client.New(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("creating a client without a cache: %w", err)
	}
	cluster, err := o.readCluster(ctx, live)
	if err != nil {
		return err
	}
	granted := rights.New(live, nil)
	if err := hooks.add(mgr, o.hookOptions(catalog, cluster, granted)); err != nil {
		return err
	}
	runners, err := newRunners(ctx, o, live, mgr, leader)
	if err != nil {
		return err
	}
	budget, err := newBudget(o)
	if err != nil {
		return err
	}
	pool := newPool(o, runners, budget)
	given := iac.Options{
		Client: live, Catalog: catalog, Runners: runners, Pool: pool, Environment: cluster, Cluster: cluster, Rights: granted,
		Store: state.New(live, state.Options{Keys: o.stateKeys, Logger: ctrl.Log.WithName("state")}), Modules: store.New(live, store.Options{Keys: o.moduleKeys, Known: catalog.Has}),
	}
	actuator, err := newActuator(mgr, given, leader.Leadership, o)
	if err != nil {
		return err
	}
	engines := &trackedActuator{Actuator: actuator}
	if err := add(mgr, append(newOrphans(mgr, given, actuator, leader.Epoch().Holder, o), given.Store.Preload(o.namespace), newGarbage(readingTime), engines, budget)); err != nil {
		return err
	}
	if err := addControllers(ctx, mgr, dependencies{actuator: actuator, pool: pool, nodes: pipeline.NewNodes(mgr.GetCache()), options: o}); err != nil {
		return err
	}
	ctrl.Log.Info("Starting", "version", version, "namespace", o.namespace)
	return leader.serve(ctx, mgr.Start, engines)
}

func add(mgr manager.Manager, runnables []manager.Runnable) error {
	for _, runnable := range runnables {
		if err := mgr.Add(runnable); err != nil {
			return fmt.Errorf("adding the actuator: %w", err)
		}
	}
	return nil
}

func restConfig(o options) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the API server: %w; run in a Pod, or set --kubeconfig", err)
	}
	config.QPS, config.Burst = float32(o.qps), o.burst
	config.WarningHandlerWithContext = newWarnings(ctrl.Log.WithName("api-server"), clock.RealClock{})
	config.UserAgent = "machine-iac-operator/" + version
	config.DisableCompression = true // of thousands of states it takes longer than the transfer
	return config, nil
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, machinev1beta1.Install, configv1.Install} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("building the scheme: %w", err)
		}
	}
	return scheme, nil
}

func newManager(config *rest.Config, hooks webhook.Server, leader *leadership.Leadership, o options) (manager.Manager, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	cached, err := cacheOptions(config, o)
	if err != nil {
		return nil, err
	}
	stop := o.stopTimeout()
	mgr, err := ctrl.NewManager(config, manager.Options{
		Scheme:         scheme,
		MapperProvider: newMapper,
		Cache:          cached,
		Metrics: metricsserver.Options{
			BindAddress: o.metricsAddress, SecureServing: true, CertDir: o.metricsCertDir,
			TLSOpts:        []func(*tls.Config){o.tls},
			FilterProvider: filters.WithAuthenticationAndAuthorization,
		},
		WebhookServer:          hooks,
		HealthProbeBindAddress: o.healthAddress,
		PprofBindAddress:       o.pprofAddress,
		LeaderElection:         o.leaderElect,
		LeaderElectionID:       leaseName,
		// The Lease is released when all engines have ended. The manager would release it when it has stopped or the shutdown has timed out.
		LeaderElectionResourceLockInterface: leader.ResourceLock(),
		LeaseDuration:                       &o.timing.Lease,
		RenewDeadline:                       &o.timing.Renew,
		RetryPeriod:                         &o.timing.Retry,
		GracefulShutdownTimeout:             &stop,
	})
	if err != nil {
		return nil, fmt.Errorf("creating the manager: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, fmt.Errorf("adding the health check: %w", err)
	}
	if err := mgr.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return nil, fmt.Errorf("adding the readiness check: %w", err)
	}
	return mgr, nil
}

// nodeSyncPeriod is in place of --sync-period for Nodes, which no controller does anything about unless they change.
const nodeSyncPeriod = 24 * time.Hour

// cacheOptions returns what the manager caches. Nodes are in a cache of their own: that of a namespace looks up the scope of an object at each Get, and drops the
// options of a Get of one without a namespace, client.UnsafeDisableDeepCopy among them.
func cacheOptions(config *rest.Config, o options) (cache.Options, error) {
	newInformer, err := pipeline.NewInformer(config)
	if err != nil {
		return cache.Options{}, err
	}
	return cache.Options{
		SyncPeriod:        &o.syncPeriod,
		DefaultNamespaces: map[string]cache.Config{o.namespace: {}},
		DefaultTransform:  withoutBulk,
		NewInformer:       newInformer,
		ByObject:          map[client.Object]cache.ByObject{&corev1.Node{}: {SyncPeriod: ptr.To(nodeSyncPeriod)}},
	}, nil
}

// withoutBulk takes from an object what no controller reads: its managed fields, and of a Node most of its status.
func withoutBulk(object any) (any, error) {
	if node, ok := object.(*corev1.Node); ok {
		read := node.Status
		node.Status = corev1.NodeStatus{Conditions: read.Conditions, Addresses: read.Addresses, VolumesAttached: read.VolumesAttached}
	}
	return cache.TransformStripManagedFields()(object)
}

func newPool(o options, runners map[v1alpha1.Engine]runner.Runner, budget *memory.Budget) *runs.Pool {
	series := runs.NewMetrics(labels(runners)...)
	metrics.Registry.MustRegister(series)
	return runs.New(runs.Options{
		Memory:             budget,
		MaxConcurrent:      o.maxRuns,
		MaxConcurrentDrift: o.maxDriftRuns,
		MaxBatch:           o.applyBatch,
		MaxBatchDrift:      o.driftBatch,
		MaxQueued:          o.maxQueuedRuns,
		Deadline:           o.runTimeout,
		MaxWait:            o.jobs.queueTimeout,
		StopTimeout:        o.stopTimeout() - stopSlack/2,
		Logger:             ctrl.Log.WithName("runs"),
		Metrics:            series,
	})
}

// loadModules loads the built-in modules, and those of folders and archives.
func loadModules(ctx context.Context, o options) (*module.Catalog, error) {
	builtin, err := load.Modules(modules.FS)
	if err != nil {
		return nil, err
	}
	programs, err := load.Modules(stacks.FS)
	if err != nil {
		return nil, err
	}
	added, err := load.Folders(o.moduleDirs...)
	if err != nil {
		return nil, err
	}
	if o.moduleKeys == nil {
		ctrl.Log.Info("Modules that are stored for Machines are not signed: whoever may write Secrets in the namespace can store others; set --module-key-file",
			"namespace", o.namespace)
	}
	signedBy, err := o.readSourceKeys()
	if err != nil {
		return nil, err
	}
	fetched, err := source.FetchAll(ctx, o.moduleSources, source.Options{
		CacheDir: filepath.Join(o.workDir, "module-sources"),
		SignedBy: signedBy,
		Logger:   ctrl.Log.WithName("module-source"),
	})
	if err != nil {
		return nil, err
	}
	return module.NewCatalog(slices.Concat(builtin, programs, added, fetched)...)
}

// readCluster sets options without a flag from the cluster's configuration, and returns a reader for the rest of it.
func (o *options) readCluster(ctx context.Context, live client.Reader) (*config.Reader, error) {
	cluster, err := config.New(config.Options{
		Client: live,
		Dir:    authoritiesDir(*o),
		Given:  slices.Collect(maps.Keys(o.engineEnvironment)),
		Logger: ctrl.Log.WithName("cluster-config"),
	})
	if err != nil {
		return nil, err
	}
	settings, err := cluster.Settings(ctx)
	if err != nil {
		return nil, err
	}
	o.take(settings.ClusterValues)
	return cluster, nil
}

// newOrphans returns the pass over the states, with what the actuator works with, and the inventory unless it is turned off.
func newOrphans(mgr manager.Manager, given iac.Options, actuator *iac.Actuator, owner string, o options) []manager.Runnable {
	pass := orphans.New(orphans.Options{
		Namespace: o.namespace, Client: given.Client, Cache: mgr.GetClient(), Actuator: actuator, Store: given.Store, Catalog: given.Catalog, Modules: given.Modules,
		Owner: owner, Policy: o.orphanPolicy, GracePeriod: o.orphanGrace, Recorder: mgr.GetEventRecorder("machine-iac-orphans"), Logger: ctrl.Log.WithName("orphans"),
	})
	metrics.Registry.MustRegister(pass)
	if o.inventoryEvery <= 0 {
		return []manager.Runnable{pass}
	}
	return []manager.Runnable{pass, &orphans.Inventory{Orphans: pass, Every: o.inventoryEvery}}
}

// newActuator returns the actuator with the given options and the remaining ones.
func newActuator(mgr manager.Manager, given iac.Options, leader *leadership.Leadership, o options) (*iac.Actuator, error) {
	series := reporting.NewMetrics(slices.Sorted(maps.Keys(given.Runners))...)
	metrics.Registry.MustRegister(series.Collectors()...)
	given.Metrics = series
	given.Recorder = mgr.GetEventRecorder("machine-iac-actuator")
	given.Owner = leader.Epoch().Holder
	given.Leader = leader
	given.ClusterValues = o.clusterValues()
	given.DriftInterval = o.driftInterval
	given.ModuleUpdates = o.moduleUpdates
	given.Adoption = o.adoption
	given.References = o.references().AtRuns(o.webhooks)
	given.Logger = ctrl.Log.WithName("actuator")
	return iac.New(given)
}
