package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	k8sselection "k8s.io/apimachinery/pkg/selection"
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

	"github.com/machine-iac/machine-iac-operator/actuators/iac"
	"github.com/machine-iac/machine-iac-operator/actuators/orphans"
	"github.com/machine-iac/machine-iac-operator/actuators/reporting"
	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
	"github.com/machine-iac/machine-iac-operator/internal/adoption"
	"github.com/machine-iac/machine-iac-operator/internal/bootstrap"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/config"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/rights"
	"github.com/machine-iac/machine-iac-operator/internal/engine/memory"
	"github.com/machine-iac/machine-iac-operator/internal/installation"
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
	mgr, err := newManager(config, hooks, leader.Leadership, o)
	if err != nil {
		return err
	}
	live, err := client.New(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("creating a client without a cache: %w", err)
	}
	if err := addControllerPorts(mgr, hooks, o, net.Listen); err != nil {
		return err
	}
	own, cluster, err := o.readCluster(ctx, live)
	if err != nil {
		return err
	}
	granted := rights.New(live, nil)
	if err := hooks.add(ctx, mgr, live, o.hookOptions(catalog, cluster, granted, own)); err != nil {
		return err
	}
	engines, err := addActuator(ctx, mgr, leader, iac.Options{
		Client: live, Installation: own, Catalog: catalog, Environment: cluster, Cluster: cluster, Rights: granted,
		Bootstrap: bootstrap.New(bootstrap.Options{Client: live, Installation: own, Groups: o.bootstrapGroups,
			Lifetime: o.bootstrapLifetime}),
		Modules: store.New(live, store.Options{Keys: o.moduleKeys, Known: catalog.Has}),
		Store:   state.New(live, state.Options{Namespace: o.namespace, Keys: o.stateKeys, Logger: ctrl.Log.WithName("state")}),
	}, o)
	if err != nil {
		return err
	}
	ctrl.Log.Info("Starting", "version", version, "namespace", o.namespace)
	return leader.serve(ctx, mgr.Start, engines)
}

// addActuator adds the engines' runners, the actuator that runs them, and the controllers that call it.
func addActuator(ctx context.Context, mgr manager.Manager, leader *leading, given iac.Options,
	o options) (*trackedActuator, error) {
	var err error
	if given.Runners, err = newRunners(ctx, o, given.Client, mgr, leader); err != nil {
		return nil, err
	}
	budget, err := newBudget(o)
	if err != nil {
		return nil, err
	}
	given.Pool = newPool(o, given.Runners, budget)
	actuator, err := newActuator(mgr, given, leader.Leadership, o)
	if err != nil {
		return nil, err
	}
	engines := &trackedActuator{Actuator: actuator}
	runnables := newOrphans(mgr, given, actuator, leader.Epoch().Holder, o)
	lister := &moduleLister{client: given.Client, catalog: given.Catalog, options: o}
	if err := add(mgr, append(runnables, engines, budget, lister)); err != nil {
		return nil, err
	}
	return engines, addControllers(ctx, mgr, dependencies{
		actuator: actuator, pool: given.Pool, nodes: pipeline.NewNodes(mgr.GetCache()), tokens: given.Bootstrap,
		options: o,
	})
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
	config.DisableCompression = true // compressing thousands of states takes longer than transferring them
	return config, nil
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, machinev1beta1.Install,
		v1beta1.AddToScheme, configv1.Install} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("building the scheme: %w", err)
		}
	}
	return scheme, nil
}

func newManager(config *rest.Config, hooks hooks, leader *leadership.Leadership,
	o options) (manager.Manager, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	stop := o.stopTimeout()
	metricsTLS := []func(*tls.Config){o.tls}
	if o.metricsCertDir == "" {
		metricsTLS = append(metricsTLS, hooks.metricsTLS)
	}
	mgr, err := ctrl.NewManager(config, manager.Options{
		Scheme:         scheme,
		MapperProvider: newMapper,
		Cache:          cacheOptions(o),
		Metrics: metricsserver.Options{
			BindAddress: o.metricsAddress, SecureServing: true, CertDir: o.metricsCertDir,
			TLSOpts:        metricsTLS,
			FilterProvider: filters.WithAuthenticationAndAuthorization,
		},
		WebhookServer:          hooks.server,
		HealthProbeBindAddress: o.healthAddress,
		PprofBindAddress:       o.pprofAddress,
		LeaderElection:         o.leaderElect,
		LeaderElectionID:       leaseName,
		// The Lease is released when all engines have ended. The manager would already release it
		// when it has stopped or the shutdown has timed out.
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

// nodeSyncPeriod replaces --sync-period for Nodes, since no controller acts on an unchanged Node.
const nodeSyncPeriod = 24 * time.Hour

// notOfStates selects Secrets that are not state Secrets.
func notOfStates() k8slabels.Selector {
	absent, err := k8slabels.NewRequirement(state.LabelRole, k8sselection.DoesNotExist, nil)
	if err != nil {
		panic("selecting Secrets: " + err.Error()) // cannot happen: the arguments are constant
	}
	return k8slabels.NewSelector().Add(*absent)
}

// cacheOptions returns the options of the manager's cache. Nodes have a cache of their own. A
// namespaced cache looks up an object's scope on each Get, and drops the options of a Get of a
// cluster-scoped object, such as client.UnsafeDisableDeepCopy.
func cacheOptions(o options) cache.Options {
	return cache.Options{
		SyncPeriod:        &o.syncPeriod,
		DefaultNamespaces: map[string]cache.Config{o.namespace: {}},
		DefaultTransform:  withoutBulk,
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Node{}:   {SyncPeriod: ptr.To(nodeSyncPeriod)},
			&corev1.Secret{}: {Label: notOfStates()}, // state Secrets have their own finalizer
		},
	}
}

// withoutBulk removes what no controller reads: managed fields, and most of a Node's status and
// heartbeat times. A transition in the future shows that the Node's clock is ahead; its heartbeat says
// by how much.
func withoutBulk(object any) (any, error) {
	if node, ok := object.(*corev1.Node); ok {
		read := node.Status
		node.Status = corev1.NodeStatus{Conditions: read.Conditions, Addresses: read.Addresses,
			VolumesAttached: read.VolumesAttached}
		for i := range read.Conditions {
			if !read.Conditions[i].LastTransitionTime.After(time.Now()) {
				read.Conditions[i].LastHeartbeatTime = metav1.Time{}
			}
		}
	}
	return cache.TransformStripManagedFields()(object)
}

// gather is how long a batch waits for one more Machine. The Machines of a burst are submitted a few milliseconds
// apart.
const gather = 250 * time.Millisecond

func newPool(o options, runners map[v1alpha1.Engine]runner.Runner, budget *memory.Budget) *runs.Pool {
	series := runs.NewMetrics(labels(runners)...)
	metrics.Registry.MustRegister(series)
	return runs.New(runs.Options{
		Memory:             budget,
		MaxConcurrent:      o.maxRuns,
		MaxIdle:            o.idleRuns(),
		MaxConcurrentDrift: o.maxDriftRuns,
		MaxBatch:           o.applyBatch,
		MaxBatchDrift:      o.driftBatch,
		Gather:             gather,
		MaxQueued:          o.maxQueuedRuns,
		Deadline:           o.runTimeout,
		MaxWait:            o.jobs.queueTimeout,
		StopGrace:          o.shutdownGrace,
		StopTimeout:        o.interruptGrace + stopSlack/2,
		Logger:             ctrl.Log.WithName("runs"),
		Metrics:            series,
	})
}

// loadModules loads the built-in modules and those from folders and archives.
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
		ctrl.Log.Info("Stored modules are not signed: anyone who may write Secrets in the namespace can replace them; set "+
			"--module-key-file",
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

// readCluster sets options without a flag from the cluster's configuration. It returns the identity
// of this installation, and a reader for other facts about the cluster.
func (o *options) readCluster(ctx context.Context,
	live client.Client) (*installation.Installation, *config.Reader, error) {
	own, err := installation.Ensure(ctx, live, o.namespace)
	if err != nil {
		return nil, nil, err
	}
	cluster, err := config.New(config.Options{
		Client:       live,
		Dir:          authoritiesDir(*o),
		Given:        slices.Collect(maps.Keys(o.engineEnvironment)),
		Installation: string(own.UID()),
		Logger:       ctrl.Log.WithName("cluster-config"),
	})
	if err != nil {
		return nil, nil, err
	}
	settings, err := cluster.Settings(ctx)
	if err != nil {
		return nil, nil, err
	}
	o.take(settings.ClusterValues)
	return own, cluster, nil
}

// newOrphans returns the pass over the states, and the inventory unless it is disabled.
func newOrphans(mgr manager.Manager, given iac.Options, actuator *iac.Actuator, owner string,
	o options) []manager.Runnable {
	pass := orphans.New(orphans.Options{
		Namespace: o.namespace, Client: given.Client, Cache: mgr.GetClient(), Actuator: actuator, Store: given.Store,
		Catalog: given.Catalog, Modules: given.Modules,
		Installation: given.Installation, Owner: owner, Policy: o.orphanPolicy, GracePeriod: o.orphanGrace,
		Recorder: mgr.GetEventRecorder("machine-iac-orphans"), Logger: ctrl.Log.WithName("orphans"),
	})
	metrics.Registry.MustRegister(pass)
	if o.inventoryEvery <= 0 {
		return []manager.Runnable{pass}
	}
	return []manager.Runnable{pass, &orphans.Inventory{Orphans: pass, Every: o.inventoryEvery}}
}

// newActuator returns the actuator with the given options and the remaining ones.
func newActuator(mgr manager.Manager, given iac.Options, leader *leadership.Leadership,
	o options) (*iac.Actuator, error) {
	series := reporting.NewMetrics(slices.Sorted(maps.Keys(given.Runners))...)
	metrics.Registry.MustRegister(series.Collectors()...)
	given.Metrics = series
	given.Recorder = mgr.GetEventRecorder("machine-iac-actuator")
	given.Owner = leader.Epoch().Holder
	given.Leader = leader
	given.ClusterValues = o.clusterValues()
	given.DriftInterval = o.driftInterval
	given.ModuleUpdates = o.moduleUpdates
	given.Adoption = adoption.Rules{Policy: o.adoption, WithoutWebhooks: !o.webhooks}
	given.References = o.references().AtRuns(o.webhooks)
	given.Logger = ctrl.Log.WithName("actuator")
	return iac.New(given)
}
