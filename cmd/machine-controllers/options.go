package main

import (
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/machine-iac/machine-iac-operator/actuators/orphans"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/references"
	"github.com/machine-iac/machine-iac-operator/internal/desired"
	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
	"github.com/machine-iac/machine-iac-operator/internal/engine/tofu"
	"github.com/machine-iac/machine-iac-operator/internal/leadership"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/store"
	"github.com/machine-iac/machine-iac-operator/internal/state/encryption"
)

const (
	serviceAccountNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
	// stopSlack is how long the manager may take to stop beyond the grace period of its engines.
	stopSlack = time.Minute
)

// options are the flags.
type options struct {
	kubeconfig string
	namespace  string
	qps        float64
	burst      int
	syncPeriod time.Duration

	controllers selection

	leaderElect    bool
	leaseNamespace string
	leaseDuration  time.Duration
	renewDeadline  time.Duration
	retryPeriod    time.Duration
	timing         leadership.Timing // of the three

	metricsAddress string
	metricsCertDir string
	healthAddress  string
	pprofAddress   string

	tlsMinVersion   string
	tlsCipherSuites string
	tls             func(*tls.Config) // of the two

	webhooks           bool
	webhookPort        int
	webhookCertDir     string
	clusterID          string
	givenClusterValues assignments
	secretReferences   references.Mode
	usableSecrets      list

	workDir           string
	engine            string
	enginePath        string
	engineVersion     string
	engineInstall     bool
	engineEnvironment assignments
	pulumi            string
	pulumiPlugins     string
	moduleDirs        list
	moduleUpdates     desired.ModuleUpdates
	adoption          lifecycle.Adoption
	moduleSources     list
	moduleSourceKeys  list
	moduleKeyFile     string
	moduleKeys        *store.Keys // of the file
	stateKeyFile      string
	stateEncryption   bool
	stateKeys         *encryption.Keys // of the file
	providerMirror    string
	allowDownloads    bool
	sandbox           sandbox.Mode
	sandboxRead       list

	maxRuns        int
	warmProviders  int
	warmMemory     resource.QuantityValue
	maxDriftRuns   int
	applyBatch     int
	driftBatch     int
	maxQueuedRuns  int
	memoryLimit    string
	memoryBytes    int64 // of that, or of the container; zero for none
	memoryUnknown  error // why the container's is not known
	runTimeout     time.Duration
	interruptGrace time.Duration
	driftInterval  time.Duration
	orphanPolicy   orphans.Policy
	orphanGrace    time.Duration
	inventoryEvery time.Duration
	reconciles     int
	maxDrains      int

	jobs jobOptions

	showVersion bool
}

func (o *options) bind(flags *flag.FlagSet) {
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "Path of the kubeconfig file. Default: the KUBECONFIG variable, or the Pod's service account.")
	flags.StringVar(&o.namespace, "namespace", os.Getenv("POD_NAMESPACE"), "Namespace whose Machines are managed; their state is stored there too. Default: the Pod's own.")
	flags.Float64Var(&o.qps, "kube-api-qps", 1000, "Average requests per second to the API server, which protects itself by priority and fairness; a lower value slows large MachineSets down.")
	flags.IntVar(&o.burst, "kube-api-burst", 2000, "Largest burst of requests to the API server.")
	flags.DurationVar(&o.syncPeriod, "sync-period", 10*time.Minute, "How often every Machine is reconciled without an event.")

	o.controllers = selection{"*"}
	flags.Var(&o.controllers, "controllers", "Controllers to run, separated by commas: '*' for all but machineclass, 'name' for one, '-name' to leave one out of '*'.")

	flags.BoolVar(&o.leaderElect, "leader-elect", true, "Elect a leader, and do nothing until this process leads. Without it, make sure that no other process manages the namespace.")
	flags.StringVar(&o.leaseNamespace, "leader-elect-resource-namespace", "", "Namespace of the leader's Lease. Default: --namespace.")
	flags.DurationVar(&o.leaseDuration, "leader-elect-lease-duration", leadership.DefaultLease, "How long other managers wait after the leader's last renewal of the Lease, in whole seconds. By then its engines have ended.")
	flags.DurationVar(&o.renewDeadline, "leader-elect-renew-deadline", 0, "How long after its last renewal of the Lease a leader acts. In the rest of the lease duration its engines end: after a third of it without heartbeats they are interrupted, and after another half of it they are killed. Default: 107/137 of the lease duration.")
	flags.DurationVar(&o.retryPeriod, "leader-elect-retry-period", 0, "How often the leader renews the Lease, and the others check it. Default: 26/137 of the lease duration.")

	o.bindServers(flags)
	o.bindKeys(flags)

	flags.StringVar(&o.clusterID, "cluster-id", "", "Name of the cluster's infrastructure: the label machine.openshift.io/cluster-api-cluster of Machines that are created without it. Default: that of the cluster's Infrastructure; without one, the label is not set.")

	flags.Var(&o.givenClusterValues, "cluster-fact", "NAME=VALUE of the cluster, for the defaults of fields that a providerSpec lacks: architecture, networkResourceGroup, platform, project, region or resourceGroup; may be repeated. Default: those of the cluster's Infrastructure.")

	flags.StringVar(&o.workDir, "work-dir", "/var/lib/machine-iac", "Private folder for modules and runs. It holds secrets while runs execute: use memory or an encrypted disk.")
	flags.StringVar(&o.engine, "engine", "", "tofu or terraform, found on PATH. Default: the first of the two that is found.")
	flags.StringVar(&o.enginePath, "engine-path", "", "Path of the engine's binary, instead of a search on PATH.")
	flags.StringVar(&o.engineVersion, "engine-version", tofu.DefaultConstraint, "Accepted versions of the engine.")
	flags.BoolVar(&o.engineInstall, "engine-install", false, "Download a released Terraform when no engine is found.")
	flags.StringVar(&o.pulumi, "pulumi", "", "Path of the Pulumi CLI, with its language hosts in the same folder. Default: pulumi on PATH; without it, Machines of stacks wait.")
	flags.StringVar(&o.pulumiPlugins, "pulumi-plugins", "", "Folder with Pulumi's plugins, as 'pulumi plugin install' lays them out. No plugin is downloaded.")
	flags.Var(&o.engineEnvironment, "engine-env", "NAME=VALUE in the environment of every engine, such as a proxy; may be repeated. It takes precedence over the cluster's configuration. Nothing else of this process's environment reaches an engine.")
	flags.Var(&o.moduleDirs, "module-dir", "Folder of one or more provider modules, in addition to the built-in ones; may be repeated.")
	flags.Var(&o.moduleSources, "module-source", "Archive of a provider module, pinned by its digest: oci://registry/repository@sha256:..., https://host/module.tar.gz@sha256:... or file:///module.tar.gz@sha256:...; may be repeated.")
	o.moduleUpdates = desired.ModuleUpdatesHold
	flags.Var(&o.moduleUpdates, "module-updates", "What happens to Machines whose module has changed: Hold keeps them on the content that they were created with, InPlace updates them to the new content where that replaces nothing. The annotation machine-iac.io/module-updates of a Machine takes precedence.")
	flags.Var(&o.adoption, "adoption", "What is done about instances that something else than this operator has made: OnRequest leaves them alone, Plan plans their adoption and reports it, Adopt adopts them. The annotation machine-iac.io/adoption of a Machine or a MachineSet takes precedence.")
	flags.StringVar(&o.providerMirror, "provider-mirror", "", "Folder with providers, laid out as a filesystem mirror.")
	flags.BoolVar(&o.allowDownloads, "allow-provider-downloads", false, "Download providers that the mirror lacks, when a module is first used.")
	o.sandbox = sandbox.Preferred
	flags.Var(&o.sandbox, "sandbox", "Whether engines and providers are confined to the files of their run by the kernel's Landlock: preferred as far as the kernel can, required starts no run where it cannot, off.")
	flags.Var(&o.sandboxRead, "sandbox-read", "Further file or folder that engines and providers may read, such as an authority or a key that credentials name; may be repeated. What --engine-env names they may read.")

	o.bindRuns(flags)

	flags.BoolVar(&o.showVersion, "version", false, "Print the version and exit.")
}

// bindRuns adds the flags of how much is done at a time, and how often.
func (o *options) bindRuns(flags *flag.FlagSet) {
	flags.IntVar(&o.maxRuns, "max-concurrent-runs", 8, "Number of engine runs at a time.")
	flags.IntVar(&o.warmProviders, "warm-providers", 8, "Number of provider plugins of each engine, and of hosts of Pulumi's programs, that are kept running between runs, each used by one run at a time with one set of credentials. Saves most of a run's CPU time. 0 starts a plugin for each run.")
	o.warmMemory.Quantity = resource.MustParse("1Gi")
	flags.Var(&o.warmMemory, "warm-providers-memory", "Memory that the plugins of --warm-providers may take together while no run uses them. Beyond it, or a quarter of --memory-limit, those that were not used for longest are ended.")
	flags.IntVar(&o.maxDriftRuns, "max-concurrent-drift-checks", 0, "How many of these runs may be drift checks. Default: a quarter, at least one.")
	flags.IntVar(&o.applyBatch, "apply-batch", 10, "How many Machines of a MachineSet one process of OpenTofu or Terraform may create, or destroy, of those that wait and have the content of their module and their credentials in common. 1 has each by a process of its own.")
	flags.IntVar(&o.driftBatch, "drift-batch", 10, "How many Machines of a MachineSet one process of OpenTofu or Terraform may check for drift, of those that wait and have the content of their module and their credentials in common. 1 checks each alone.")
	flags.IntVar(&o.maxQueuedRuns, "max-queued-runs", 10000, "Number of engine runs that may wait; further Machines are requeued.")
	flags.StringVar(&o.memoryLimit, "memory-limit", "", "What this process and its engines may take of the memory, such as 512Mi; 0 for no bound. A run waits until it is expected to fit. Default: nine tenths of the container's limit, if it has one.")
	flags.DurationVar(&o.runTimeout, "run-timeout", 30*time.Minute, "How long one engine run may take before it is interrupted.")
	flags.DurationVar(&o.interruptGrace, "interrupt-grace", 2*time.Minute, "How long an interrupted engine may take to save its state before it is killed.")
	flags.DurationVar(&o.driftInterval, "drift-interval", time.Hour, "How often an instance is checked for drift, plus or minus a tenth.")
	o.orphanPolicy = orphans.PolicyRetain
	flags.Var(&o.orphanPolicy, "orphan-policy", "What happens to a state whose Machine is gone, and to an instance without either: Retain reports it, Delete also destroys it, after the grace period.")
	flags.DurationVar(&o.orphanGrace, "orphan-grace-period", 24*time.Hour, "How long after it was first seen a state whose Machine is gone, or an instance without either, is destroyed, with --orphan-policy=Delete; and how old such an instance is when it is reported.")
	flags.DurationVar(&o.inventoryEvery, "inventory-interval", time.Hour, "How often the instances of the cluster are listed, by modules with an inventory, and those are reported that belong to no Machine and no state. 0 turns it off.")
	flags.IntVar(&o.reconciles, "max-concurrent-reconciles", 10, "Number of Machines that are reconciled at a time. No reconcile waits for a run.")
	flags.IntVar(&o.maxDrains, "max-concurrent-drains", 10, "Number of Nodes that are drained at a time. One that cannot be drained goes to the end of the queue.")
}

// bindServers adds the flags of what this process serves.
func (o *options) bindServers(flags *flag.FlagSet) {
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", ":8443", "Address of the metrics endpoint, served over TLS to callers that may get /metrics. 0 turns it off.")
	flags.StringVar(&o.metricsCertDir, "metrics-cert-dir", "", "Folder with tls.crt and tls.key for the metrics endpoint. Default: a certificate generated at start.")
	flags.StringVar(&o.tlsMinVersion, "tls-min-version", "", "Lowest version of TLS that the metrics endpoint and the webhooks accept: VersionTLS12 or VersionTLS13. Default: that of Go.")
	flags.StringVar(&o.tlsCipherSuites, "tls-cipher-suites", "", "Cipher suites that they accept below TLS 1.3, separated by commas, by their names in Go's package crypto/tls. Default: those of Go.")
	flags.StringVar(&o.healthAddress, "health-addr", ":9440", "Address of /healthz and /readyz.")
	flags.StringVar(&o.pprofAddress, "pprof-bind-address", "", "Address of /debug/pprof, plain HTTP, for profiles of this process: one of loopback, since whoever reaches it may read them. Empty turns it off.")

	o.jobs.bind(flags)

	flags.BoolVar(&o.webhooks, "webhook-enabled", true, "Serve the webhooks that default and validate Machines, MachineSets and MachineHealthChecks. Every replica serves them, leader or not.")
	flags.IntVar(&o.webhookPort, "webhook-port", 9443, "Port of the webhooks, served over TLS.")
	flags.StringVar(&o.webhookCertDir, "webhook-cert-dir", "", "Folder with tls.crt and tls.key for the webhooks. Whoever provides them also rotates them and sets the caBundle of the webhook configurations. Default: the manager does all of this, with the Secret "+webhookSecret+".")
	o.secretReferences = references.Labelled
	flags.Var(&o.secretReferences, "secret-references", "Which Secrets a providerSpec may name: Labelled those with the label "+references.Label+", Reviewed also those that the user who writes the Machine or MachineSet may get, Any all but the operator's own. The Secrets that OpenShift makes for Machines need no label.")
	flags.Var(&o.usableSecrets, "usable-secret", "Name of a further Secret that needs no label; may be repeated.")
}

// complete sets defaults that depend on the environment, and validates the options.
func (o *options) complete() error {
	if o.namespace == "" {
		own, err := os.ReadFile(serviceAccountNamespace)
		if err != nil {
			return errors.New("no namespace to manage: set --namespace, or POD_NAMESPACE, or run in a Pod")
		}
		o.namespace = strings.TrimSpace(string(own))
	}
	if o.leaseNamespace == "" {
		o.leaseNamespace = o.namespace
	}
	for name, value := range map[string]int64{
		"max-concurrent-runs": int64(o.maxRuns), "apply-batch": int64(o.applyBatch), "drift-batch": int64(o.driftBatch), "max-queued-runs": int64(o.maxQueuedRuns), "max-concurrent-reconciles": int64(o.reconciles),
		"max-concurrent-drains": int64(o.maxDrains),
		"run-timeout":           int64(o.runTimeout), "run-queue-timeout": int64(o.jobs.queueTimeout), "interrupt-grace": int64(o.interruptGrace), "drift-interval": int64(o.driftInterval),
		"orphan-grace-period": int64(o.orphanGrace),
		"sync-period":         int64(o.syncPeriod), "kube-api-burst": int64(o.burst), "kube-api-qps": int64(o.qps),
	} {
		if value <= 0 {
			return fmt.Errorf("--%s is zero or less; set it to a value above zero", name)
		}
	}
	var err error
	if o.timing, err = leadership.NewTiming(o.leaseDuration, o.renewDeadline, o.retryPeriod); err != nil {
		return err
	}
	if err := o.checkMemory(memlimit.FromCgroup); err != nil {
		return err
	}
	if len(o.controllers.chosen()) == 0 {
		return fmt.Errorf("--controllers is %q, which selects no controller; start with '*' to leave some out", o.controllers.String())
	}
	if o.tls, err = serving(o.tlsMinVersion, o.tlsCipherSuites); err != nil {
		return err
	}
	if o.webhookPort < 1 || o.webhookPort > 65535 {
		return fmt.Errorf("--webhook-port is %d; choose one from 1 to 65535, or --webhook-enabled=false", o.webhookPort)
	}
	if o.engine != "" && o.engine != "tofu" && o.engine != "terraform" {
		return fmt.Errorf("--engine is %q; set it to tofu or terraform, or leave it out", o.engine)
	}
	return errors.Join(o.checkWarm(), o.checkPprof(), o.checkCluster(), o.checkJobs(), o.readModuleKeys(), o.readStateKeys())
}

// checkWarm validates the options about warm providers.
func (o *options) checkWarm() error {
	if o.warmProviders < 0 {
		return fmt.Errorf("--warm-providers is %d; set it to a number of plugins, or to 0 to start one for each run", o.warmProviders)
	}
	if o.warmMemory.Sign() <= 0 {
		return fmt.Errorf("--warm-providers-memory is %s; set it to an amount such as 1Gi, or keep no plugins with --warm-providers=0", o.warmMemory.String())
	}
	return nil
}

// checkPprof refuses to serve profiles to others than this machine.
func (o *options) checkPprof() error {
	if o.pprofAddress == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(o.pprofAddress)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("--pprof-bind-address is %q; set it to an address of loopback such as 127.0.0.1:6060, since everybody who reaches it may read profiles", o.pprofAddress)
	}
	return nil
}

// serving returns what sets these restrictions in the configuration of a server.
func serving(minVersion, suites string) (func(*tls.Config), error) {
	lowest, err := cliflag.TLSVersion(minVersion)
	if err != nil {
		return nil, fmt.Errorf("--tls-min-version: %w; use one of %s", err, strings.Join(cliflag.TLSPossibleVersions(), ", "))
	}
	var chosen []uint16
	if suites != "" {
		if chosen, err = cliflag.TLSCipherSuites(strings.Split(suites, ",")); err != nil {
			return nil, fmt.Errorf("--tls-cipher-suites: %w; use some of %s", err, strings.Join(cliflag.PreferredTLSCipherNames(), ", "))
		}
	}
	return func(config *tls.Config) {
		if minVersion != "" {
			config.MinVersion = lowest
		}
		config.CipherSuites = chosen
	}, nil
}

// checkCluster validates the options about the cluster.
func (o *options) checkCluster() error {
	if problems := validation.IsValidLabelValue(o.clusterID); len(problems) > 0 {
		return fmt.Errorf("--cluster-id is %q, which is not a valid label value: %s", o.clusterID, strings.Join(problems, ", "))
	}
	for name := range o.givenClusterValues {
		if module.PerMachine(name) || !slices.Contains(module.ClusterValueNames(), name) {
			return fmt.Errorf("--cluster-fact names %q, which is not a cluster value; name architecture, networkResourceGroup, platform, project, region or resourceGroup", name)
		}
	}
	return nil
}

// take sets options without a flag from the cluster's configuration.
func (o *options) take(found module.ClusterValues) {
	if o.clusterID == "" {
		o.clusterID = found[module.ValueClusterID]
	}
	values := assignments{}
	maps.Copy(values, found)
	delete(values, module.ValueClusterID)
	maps.Copy(values, o.givenClusterValues)
	o.givenClusterValues = values
}

// clusterValues returns the cluster values. The architecture defaults to that of this process.
func (o *options) clusterValues() module.ClusterValues {
	values := module.ClusterValues{module.ValueArchitecture: runtime.GOARCH}
	maps.Copy(values, o.givenClusterValues)
	values[module.ValueClusterID] = o.clusterID
	return values
}

// stopTimeout is how long the manager may take to stop. The Pod's grace period must be longer.
func (o *options) stopTimeout() time.Duration { return o.interruptGrace + stopSlack }

// list is a flag that may be repeated.
type list []string

// String implements flag.Value.
func (l *list) String() string { return strings.Join(*l, ",") }

// Set implements flag.Value.
func (l *list) Set(text string) error {
	if text == "" {
		return errors.New("it is empty")
	}
	*l = append(*l, text)
	return nil
}

// assignments is a flag of NAME=VALUE that may be repeated.
type assignments map[string]string

// String implements flag.Value. It returns names only, as values may be secret.
func (a *assignments) String() string {
	names := make([]string, 0, len(*a))
	for name := range *a {
		names = append(names, name)
	}
	return strings.Join(names, ",")
}

// Set implements flag.Value.
func (a *assignments) Set(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return errors.New("write it as NAME=VALUE")
	}
	if *a == nil {
		*a = assignments{}
	}
	(*a)[name] = value
	return nil
}
