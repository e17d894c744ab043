package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/machine-iac/machine-iac-operator/actuators/iac"
	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/controllers/bootstraptoken"
	"github.com/machine-iac/machine-iac-operator/controllers/capacity"
	"github.com/machine-iac/machine-iac-operator/controllers/certificates"
	"github.com/machine-iac/machine-iac-operator/controllers/drain"
	"github.com/machine-iac/machine-iac-operator/controllers/legacyhealthcheck"
	"github.com/machine-iac/machine-iac-operator/controllers/machine"
	"github.com/machine-iac/machine-iac-operator/controllers/machineclass"
	"github.com/machine-iac/machine-iac-operator/controllers/machinedeployment"
	"github.com/machine-iac/machine-iac-operator/controllers/machinehealthcheck"
	"github.com/machine-iac/machine-iac-operator/controllers/machineset"
	"github.com/machine-iac/machine-iac-operator/controllers/nodelink"
	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
	"github.com/machine-iac/machine-iac-operator/controllers/secretprotection"
	"github.com/machine-iac/machine-iac-operator/internal/bootstrap"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/internal/state/pulumikeys"
)

// roleBinding is the RoleBinding in the managed namespace that grants the manager its permissions.
const roleBinding = "machine-api-controllers"

// settle is how long a manager that begins to lead remediates nothing. A Node reports every 10 seconds.
const settle = 30 * time.Second

// dependencies are the inputs of controllers besides the manager.
type dependencies struct {
	actuator *iac.Actuator
	pool     *runs.Pool
	nodes    *pipeline.Nodes
	tokens   *bootstrap.Tokens
	options  options
}

// adders add one controller each to the manager.
var adders = map[string]func(context.Context, manager.Manager, dependencies) error{
	bootstraptoken.Name:     addBootstrapToken,
	capacity.Name:           addCapacity,
	certificates.Name:       addCertificates,
	drain.Name:              addDrain,
	legacyhealthcheck.Name:  addLegacyHealthCheck,
	machine.Name:            addMachine,
	machineclass.Name:       addMachineClass,
	machinedeployment.Name:  addMachineDeployment,
	machinehealthcheck.Name: addMachineHealthCheck,
	machineset.Name:         addMachineSet,
	nodelink.Name:           addNodeLink,
	secretprotection.Name:   addSecretProtection,
}

// addControllers adds the controllers that the flags select.
func addControllers(ctx context.Context, mgr manager.Manager, p dependencies) error {
	for _, name := range p.options.controllers.chosen() {
		if err := adders[name](ctx, mgr, p); err != nil {
			return err
		}
	}
	return nil
}

// addBootstrapToken adds nothing to a manager that makes no tokens.
func addBootstrapToken(_ context.Context, mgr manager.Manager, p dependencies) error {
	if len(p.options.bootstrapGroups) == 0 {
		return nil
	}
	return bootstraptoken.SetupWithManager(mgr, bootstraptoken.Options{Identity: p.tokens.Identity, Remove: p.tokens.Remove})
}

func addCapacity(_ context.Context, mgr manager.Manager, p dependencies) error {
	return capacity.SetupWithManager(mgr, capacity.Options{Estimator: p.actuator})
}

// addCertificates adds nothing on OpenShift, where cluster-machine-approver approves certificates.
func addCertificates(ctx context.Context, mgr manager.Manager, p dependencies) error {
	onOpenShift, err := servesServiceCA(mgr.GetRESTMapper())
	if err != nil {
		return err
	}
	if onOpenShift {
		ctrl.Log.Info("Approving no certificates: on OpenShift, cluster-machine-approver does", "controller", certificates.Name)
		return nil
	}
	series := certificates.NewMetrics()
	metrics.Registry.MustRegister(series.Collectors()...)
	options := certificates.Options{Metrics: series}
	if len(p.options.bootstrapGroups) > 0 {
		options.BootstrapUser = p.tokens.User
	}
	return certificates.SetupWithManager(ctx, mgr, options)
}

// servesServiceCA reports whether the cluster serves OpenShift's API of the service CA.
func servesServiceCA(mapper apimeta.RESTMapper) (bool, error) {
	_, err := mapper.RESTMapping(schema.GroupKind{Group: "operator.openshift.io", Kind: "ServiceCA"}, "v1")
	if apimeta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("finding out whether this is OpenShift: %w", err)
	}
	return true, nil
}

func addDrain(_ context.Context, mgr manager.Manager, p dependencies) error {
	// Nodes with many Pods cause many requests, so drains have a client with rate limits of their
	// own.
	clientset, err := kubernetes.NewForConfig(mgr.GetConfig())
	if err != nil {
		return fmt.Errorf("creating a client for drains: %w", err)
	}
	series := drain.NewMetrics()
	metrics.Registry.MustRegister(series.Collectors()...)
	return drain.SetupWithManager(mgr, drain.Options{Clientset: clientset, Metrics: series,
		MaxConcurrentDrains: p.options.maxDrains})
}

// addLegacyHealthCheck adds nothing to a cluster that does not serve the API, as most do not.
func addLegacyHealthCheck(ctx context.Context, mgr manager.Manager, p dependencies) error {
	readable, err := pipeline.Readable(ctx, mgr.GetClient(), legacyhealthcheck.Kind, p.options.namespace,
		"apply install/legacy")
	if err != nil || !readable {
		return err
	}
	return legacyhealthcheck.SetupWithManager(mgr, legacyhealthcheck.Options{})
}

func addMachine(ctx context.Context, mgr manager.Manager, p dependencies) error {
	series := machine.NewMetrics()
	metrics.Registry.MustRegister(series.Collectors()...)
	if err := registerWhenLeading(mgr, machine.NewCollector(ctx, mgr.GetClient())); err != nil {
		return err
	}
	return machine.SetupWithManager(mgr, machine.Options{
		Common:   pipeline.Common{MaxConcurrentReconciles: p.options.reconciles},
		Actuator: p.actuator, Events: p.pool.Events(), Metrics: series,
	})
}

func addMachineClass(_ context.Context, mgr manager.Manager, p dependencies) error {
	return machineclass.SetupWithManager(mgr, machineclass.Options{Estimator: p.actuator.Catalogs()})
}

// addMachineDeployment adds rollouts of MachineSets, and MachineDeployments if the cluster has the CRD.
func addMachineDeployment(ctx context.Context, mgr manager.Manager, p dependencies) error {
	if err := machinedeployment.SetupSetsWithManager(mgr, machinedeployment.Options{}); err != nil {
		return err
	}
	kind := v1beta1.GroupVersion.WithKind(v1beta1.MachineDeploymentKind)
	readable, err := pipeline.Readable(ctx, mgr.GetClient(), kind, p.options.namespace, "update its Role")
	if err != nil || !readable {
		return err
	}
	return machinedeployment.SetupWithManager(mgr, machinedeployment.Options{})
}

func addMachineHealthCheck(ctx context.Context, mgr manager.Manager, p dependencies) error {
	series := machinehealthcheck.NewMetrics()
	metrics.Registry.MustRegister(series.Collectors()...)
	return machinehealthcheck.SetupWithManager(ctx, mgr,
		machinehealthcheck.Options{Common: pipeline.Common{Nodes: p.nodes}, Metrics: series, Settle: settle})
}

func addMachineSet(ctx context.Context, mgr manager.Manager, p dependencies) error {
	if err := registerWhenLeading(mgr, machineset.NewCollector(ctx, mgr.GetClient())); err != nil {
		return err
	}
	return machineset.SetupWithManager(ctx, mgr, machineset.Options{Common: pipeline.Common{Nodes: p.nodes},
		Overshoot: p.options.overshoot})
}

func addNodeLink(ctx context.Context, mgr manager.Manager, p dependencies) error {
	return nodelink.SetupWithManager(ctx, mgr, nodelink.Options{Common: pipeline.Common{Nodes: p.nodes}})
}

func addSecretProtection(ctx context.Context, mgr manager.Manager, p dependencies) error {
	options := secretprotection.Options{Shared: []string{pulumikeys.SecretName}, StateLabel: state.LabelRole}
	if p.options.leaseNamespace != p.options.namespace { // otherwise this process is deleted with the namespace
		options.Binding = types.NamespacedName{Namespace: p.options.namespace, Name: roleBinding}
	}
	return secretprotection.SetupWithManager(ctx, mgr, options)
}

// registerWhenLeading registers metrics of objects once this process leads. Otherwise two replicas
// would count each object twice.
func registerWhenLeading(mgr manager.Manager, objects prometheus.Collector) error {
	return mgr.Add(manager.RunnableFunc(func(context.Context) error { return metrics.Registry.Register(objects) }))
}

// named are the controllers that run only if the flag names them: few clusters have Gardener's CRD,
// and approving certificates is a decision of the administrator.
var named = []string{certificates.Name, machineclass.Name}

// selection is a flag that selects controllers: "*" for all except the named ones, a name for
// one, "-" before a name to exclude it.
type selection []string

// String implements flag.Value.
func (s *selection) String() string { return strings.Join(*s, ",") }

// Set implements flag.Value.
func (s *selection) Set(text string) error {
	*s = strings.Split(text, ",")
	for _, part := range *s {
		name := strings.TrimPrefix(part, "-")
		if _, known := adders[name]; !known && part != "*" {
			return fmt.Errorf("%q is not a controller; use *, %s, or one of these after a '-'", part,
				strings.Join(names(), ", "))
		}
	}
	return nil
}

// chosen returns the names of the controllers to run, sorted.
func (s *selection) chosen() []string {
	return slices.DeleteFunc(names(), func(name string) bool {
		byStar := slices.Contains(*s, "*") && !slices.Contains(named, name)
		return slices.Contains(*s, "-"+name) || !byStar && !slices.Contains(*s, name)
	})
}

func names() []string { return slices.Sorted(maps.Keys(adders)) }
