package main

import (
	"cmp"
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
	"github.com/machine-iac/machine-iac-operator/internal/adoption"
	"github.com/machine-iac/machine-iac-operator/internal/bootstrap"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/references"
	"github.com/machine-iac/machine-iac-operator/internal/desired"
	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
	"github.com/machine-iac/machine-iac-operator/internal/engine/tofu"
	"github.com/machine-iac/machine-iac-operator/internal/leadership"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/store"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

const (
	serviceAccountNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
	// stopSlack is how much longer than its engines' grace periods the manager may take to stop.
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
	gates       map[string]bool // OpenShift's

	leaderElect    bool
	leaseNamespace string
	leaseMoved     bool   // earlier versions have the Lease in the managed namespace
	keysNamespace  string // of Pulumi's keys
	leaseDuration  time.Duration
	renewDeadline  time.Duration
	retryPeriod    time.Duration
	timing         leadership.Timing // of the three

	metricsAddress  string
	metricsCertDir  string
	controllerPorts bool // of metrics
	healthAddress   string
	pprofAddress    string

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
	adoption          adoption.Policy
	moduleSources     list
	moduleSourceKeys  list
	moduleKeyFile     string
	moduleKeys        *store.Keys // of the file
	stateKeyFile      string
	stateEncryption   bool
	stateKeys         *state.Keys // of the file
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
	memoryBytes    int64 // from memoryLimit or the container; zero for none
	memoryUnknown  error // why the container's limit is unknown
	runTimeout     time.Duration
	interruptGrace time.Duration
	shutdownGrace  time.Duration
	driftInterval  time.Duration
	orphanPolicy   orphans.Policy
	orphanGrace    time.Duration
	inventoryEvery time.Duration
	reconciles     int
	maxDrains      int
	overshoot      int

	bootstrapGroups   list
	bootstrapLifetime time.Duration

	jobs jobOptions

	showVersion bool
}

func (o *options) bind(flags *flag.FlagSet) {
	flags.StringVar(&o.kubeconfig, "kubeconfig", "",
		"Path of the kubeconfig file. Default: the KUBECONFIG variable, or the Pod's service account.")
	flags.StringVar(&o.namespace, "namespace", os.Getenv("POD_NAMESPACE"),
		"Namespace of the managed Machines and their state. Default: the Pod's own.")
	flags.Float64Var(&o.qps, "kube-api-qps", 1000,
		"Average requests per second to the API server, which protects itself by priority and fairness. Fewer slow down "+
			"large MachineSets.")
	flags.IntVar(&o.burst, "kube-api-burst", 2000, "Largest burst of requests to the API server.")
	flags.DurationVar(&o.syncPeriod, "sync-period", 10*time.Minute,
		"How often every Machine is reconciled without an event.")

	o.controllers = selection{"*"}
	flags.Var(&o.controllers, "controllers",
		"Comma-separated controllers to run: '*' for all but certificates and machineclass, 'name' for one, '-name' to "+
			"leave one out.")

	flags.Var(cliflag.NewMapStringBool(&o.gates), "feature-gates",
		"OpenShift's feature gates: NAME=true,NAME=false. New Machines and MachineSets must not set a field whose gate is "+
			"false.")

	o.bindLeaderElection(flags)
	o.bindServers(flags)
	o.bindKeys(flags)

	flags.StringVar(&o.clusterID, "cluster-id", "",
		"Name of the cluster's infrastructure, for the label machine.openshift.io/cluster-api-cluster of new Machines. "+
			"Default: the name in the Infrastructure, if there is one.")

	flags.Var(&o.givenClusterValues, "cluster-fact",
		"NAME=VALUE, the default of a field that a providerSpec omits: architecture, networkResourceGroup, platform, "+
			"project, region or resourceGroup; may be repeated. Default: the Infrastructure's values.")

	o.bindEngines(flags)
	o.bindRuns(flags)
	o.bindJoining(flags)

	flags.BoolVar(&o.showVersion, "version", false, "Print the version and exit.")
}

// bindLeaderElection adds the flags for leader election.
func (o *options) bindLeaderElection(flags *flag.FlagSet) {
	flags.BoolVar(&o.leaderElect, "leader-elect", true,
		"Enable leader election: do nothing until this process leads. Without it, make sure that no other process "+
			"manages the namespace.")
	flags.StringVar(&o.leaseNamespace, "leader-elect-resource-namespace", "",
		"Namespace of the leader's Lease. Default: the Pod's own, so that a leader can finish while the managed "+
			"namespace is deleted; outside a Pod, --namespace.")
	flags.DurationVar(&o.leaseDuration, "leader-elect-lease-duration", leadership.DefaultLease,
		"How long other managers wait after the leader's last renewal, in whole seconds. By then its engines have ended.")
	flags.DurationVar(&o.renewDeadline, "leader-elect-renew-deadline", 0,
		"How long a leader acts after its last renewal. Without heartbeats, its engines are interrupted after a third of "+
			"the remaining lease duration, and killed after another half. Default: 107/137 of the lease duration.")
	flags.DurationVar(&o.retryPeriod, "leader-elect-retry-period", 0,
		"How often the leader renews the Lease and others check it. Default: 26/137 of the lease duration.")
}

// bindEngines adds the flags for engines, modules and providers.
func (o *options) bindEngines(flags *flag.FlagSet) {
	flags.StringVar(&o.workDir, "work-dir", "/var/lib/machine-iac",
		"Private folder for modules and runs. It contains secrets while runs execute: use memory or an encrypted disk.")
	flags.StringVar(&o.engine, "engine", "", "The engine on PATH to use: tofu or terraform. Default: the first one found.")
	flags.StringVar(&o.enginePath, "engine-path", "", "Path of the engine's binary. Default: search PATH.")
	flags.StringVar(&o.engineVersion, "engine-version", tofu.DefaultConstraint, "Accepted versions of the engine.")
	flags.BoolVar(&o.engineInstall, "engine-install", false, "Download a Terraform release if no engine is found.")
	flags.StringVar(&o.pulumi, "pulumi", "",
		"Path of the Pulumi CLI, with its language hosts beside it. Default: pulumi on PATH; without it, Machines of "+
			"stacks wait.")
	flags.StringVar(&o.pulumiPlugins, "pulumi-plugins", "",
		"Folder with Pulumi's plugins, as 'pulumi plugin install' lays them out. None is downloaded.")
	flags.Var(&o.engineEnvironment, "engine-env",
		"NAME=VALUE in the environment of every engine, such as a proxy; may be repeated. Outranks the cluster's "+
			"configuration. Engines do not inherit this process's environment.")
	flags.Var(&o.moduleDirs, "module-dir",
		"Folder of provider modules, in addition to the built-in ones; may be repeated.")
	flags.Var(&o.moduleSources, "module-source",
		"Archive of a provider module, pinned by digest: oci://registry/repository@sha256:..., "+
			"https://host/module.tar.gz@sha256:... or file:///module.tar.gz@sha256:...; may be repeated.")
	o.moduleUpdates = desired.ModuleUpdatesHold
	flags.Var(&o.moduleUpdates, "module-updates",
		"Whether a changed module changes Machines: Hold keeps the content that they were created with, InPlace updates "+
			"them if that replaces nothing. A Machine's annotation machine-iac.io/module-updates takes precedence.")
	o.adoption = adoption.Never
	flags.Var(&o.adoption, "adoption",
		"What happens to instances that this operator did not create: Never leaves them alone, OnRequest adopts those "+
			"that an authorized user requests with the annotation machine-iac.io/adoption, Plan also reports the plan for "+
			"all others, Adopt adopts them all.")
	flags.StringVar(&o.providerMirror, "provider-mirror", "", "Filesystem mirror with the providers.")
	flags.BoolVar(&o.allowDownloads, "allow-provider-downloads", false,
		"When a module is first used, download the providers that the mirror lacks.")
	o.sandbox = sandbox.Required
	flags.Var(&o.sandbox, "sandbox",
		"Whether Landlock confines engines and providers to the files of their run: required starts no run without "+
			"Landlock, preferred falls back to running them unconfined, off never confines them.")
	flags.Var(&o.sandboxRead, "sandbox-read",
		"Additional file or folder that engines and providers may read, such as a CA certificate that credentials refer "+
			"to; may be repeated. Paths in --engine-env are readable anyway.")
}

// bindRuns adds the flags for concurrency and intervals.
func (o *options) bindRuns(flags *flag.FlagSet) {
	flags.IntVar(&o.maxRuns, "max-concurrent-runs", 8,
		"Maximum number of concurrent engine runs. With --runs-in=process, as many again may wait for the "+
			"infrastructure.")
	flags.IntVar(&o.warmProviders, "warm-providers", 8,
		"Number of provider plugins per engine to keep running between runs, which saves most of a run's CPU time. Each "+
			"serves one run at a time with one set of credentials. 0 starts a plugin for each run.")
	o.warmMemory.Quantity = resource.MustParse("1Gi")
	flags.Var(&o.warmMemory, "warm-providers-memory",
		"Memory of all idle plugins. Beyond it, or a quarter of --memory-limit, the least recently used are stopped.")
	flags.IntVar(&o.maxDriftRuns, "max-concurrent-drift-checks", 0,
		"Maximum number of concurrent drift checks. Default: a quarter of --max-concurrent-runs, at least one.")
	flags.IntVar(&o.applyBatch, "apply-batch", 50,
		"Maximum number of Machines of a MachineSet that one process of OpenTofu or Terraform creates or destroys, if "+
			"they share module content and credentials. 1 disables batches.")
	flags.IntVar(&o.driftBatch, "drift-batch", 10,
		"Maximum number of Machines of a MachineSet that one process of OpenTofu or Terraform checks for drift, if they "+
			"share module content and credentials. 1 disables batches.")
	flags.IntVar(&o.maxQueuedRuns, "max-queued-runs", 10000,
		"Maximum number of waiting engine runs, and separately of waiting destroys. At the bound, a new run displaces "+
			"the newest run of the largest MachineSet in the fullest namespace; the displaced Machine is requeued.")
	flags.StringVar(&o.memoryLimit, "memory-limit", "",
		"Memory limit of this process and its engines, such as 512Mi; 0 for none. A run waits until it is expected to "+
			"fit. Default: 90 % of the container's limit.")
	flags.DurationVar(&o.runTimeout, "run-timeout", 30*time.Minute,
		"Time limit of an engine run, which is then interrupted.")
	flags.DurationVar(&o.shutdownGrace, "shutdown-grace", 90*time.Second,
		"How long creates and changes of instances may continue when the manager stops, before they are interrupted. All "+
			"other runs are interrupted at once.")
	flags.DurationVar(&o.interruptGrace, "interrupt-grace", 2*time.Minute,
		"How long an interrupted engine may take to save its state before it is killed.")
	flags.DurationVar(&o.driftInterval, "drift-interval", time.Hour,
		"Interval between an instance's drift checks, plus or minus 10 %.")
	o.orphanPolicy = orphans.PolicyRetain
	flags.Var(&o.orphanPolicy, "orphan-policy",
		"What happens to states without a Machine, and to instances without a Machine or state: Retain reports them, "+
			"Delete also destroys them after the grace period.")
	flags.DurationVar(&o.orphanGrace, "orphan-grace-period", 24*time.Hour,
		"Minimum age of a reported orphaned instance, and with --orphan-policy=Delete the time from an orphan's "+
			"discovery to its destruction.")
	flags.DurationVar(&o.inventoryEvery, "inventory-interval", time.Hour,
		"How often modules with an inventory list the cluster's instances, to report those without Machine and state. 0 "+
			"disables it.")
	flags.IntVar(&o.reconciles, "max-concurrent-reconciles", 10,
		"Number of Machines reconciled at a time. No reconcile waits for a run.")
	flags.IntVar(&o.maxDrains, "max-concurrent-drains", 10,
		"Number of Nodes drained at a time. A blocked Node goes to the end of the queue.")
	flags.IntVar(&o.overshoot, "machine-overshoot", 10,
		"A MachineSet creates no Machine while it has this many beyond twice its replicas, counting those that did not stay.")
}

// bindJoining adds the flags for instances that join the cluster.
func (o *options) bindJoining(flags *flag.FlagSet) {
	flags.Var(&o.bootstrapGroups, "bootstrap-token-group",
		"Group of the bootstrap tokens that replace <<BOOTSTRAP_TOKEN>> in user data of Secrets with the annotation "+
			bootstrap.Annotation+", such as system:bootstrappers:kubeadm:default-node-token; may be repeated. Needs "+
			"install/bootstrap-tokens. Default: no tokens.")
	flags.DurationVar(&o.bootstrapLifetime, "bootstrap-token-lifetime", time.Hour,
		"How long a bootstrap token is valid after its Machine's create starts, unless its Node joins before. Must "+
			"exceed --run-timeout.")
}

// checkJoining validates the flags for instances that join the cluster.
func (o *options) checkJoining() error {
	if o.bootstrapLifetime <= o.runTimeout && len(o.bootstrapGroups) > 0 {
		return fmt.Errorf("invalid --bootstrap-token-lifetime %s: must exceed --run-timeout %s, so that an instance can join "+
			"after a long create", o.bootstrapLifetime, o.runTimeout)
	}
	for _, group := range o.bootstrapGroups {
		if err := bootstrap.CheckGroup(group); err != nil {
			return fmt.Errorf("--bootstrap-token-group: %w", err)
		}
	}
	return nil
}

// bindServers adds the flags for the servers of this process.
func (o *options) bindServers(flags *flag.FlagSet) {
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", ":8443",
		"Address of the metrics endpoint, served over TLS to callers that may get /metrics. 0 disables it.")
	flags.StringVar(&o.metricsCertDir, "metrics-cert-dir", "",
		"Folder with tls.crt and tls.key for the metrics endpoint. Default: the webhooks' certificate if the manager "+
			"keeps it, else a generated one.")
	flags.BoolVar(&o.controllerPorts, "metrics-controller-ports", false,
		"Also serve metrics on machine-api-operator's ports: MachineSets on 8442, MachineHealthChecks on 8444, all "+
			"others on 8441.")
	flags.StringVar(&o.tlsMinVersion, "tls-min-version", "",
		"Minimum TLS version of the metrics endpoint and the webhooks: VersionTLS12 or VersionTLS13. Default: Go's.")
	flags.StringVar(&o.tlsCipherSuites, "tls-cipher-suites", "",
		"Comma-separated cipher suites for TLS 1.2 of the metrics endpoint and the webhooks, as named in Go's "+
			"crypto/tls. Default: Go's.")
	flags.StringVar(&o.healthAddress, "health-addr", ":9440", "Address of /healthz and /readyz.")
	flags.StringVar(&o.pprofAddress, "pprof-bind-address", "",
		"Loopback address of /debug/pprof over plain HTTP. Anyone who reaches it can read this process's profiles. Empty "+
			"disables it.")

	o.jobs.bind(flags)

	flags.BoolVar(&o.webhooks, "webhook-enabled", true,
		"Serve the webhooks that default and validate Machines, MachineSets and MachineHealthChecks. Every replica serves "+
			"them, leader or not.")
	flags.IntVar(&o.webhookPort, "webhook-port", 9443, "Port of the webhooks, served over TLS.")
	flags.StringVar(&o.webhookCertDir, "webhook-cert-dir", "",
		"Folder with tls.crt and tls.key for the webhooks. If you provide them, rotate them and set the caBundle of the "+
			"webhook configurations yourself. Default: the manager does all of this with the Secret "+webhookSecret+".")
	o.secretReferences = references.Labelled
	flags.Var(&o.secretReferences, "secret-references",
		"Which Secrets a providerSpec may name. Labelled: those with the label "+references.Label+". Reviewed: also those "+
			"that the author of the Machine or MachineSet may get. Any: all except the operator's own. The Secrets that "+
			"OpenShift creates for Machines need no label.")
	flags.Var(&o.usableSecrets, "usable-secret", "Name of an additional Secret that needs no label; may be repeated.")
}

// complete sets defaults from the environment and validates the options.
func (o *options) complete() error {
	if o.namespace == "" {
		own, err := os.ReadFile(serviceAccountNamespace)
		if err != nil {
			return errors.New("no namespace to manage: set --namespace or POD_NAMESPACE, or run in a Pod")
		}
		o.namespace = strings.TrimSpace(string(own))
	}
	o.keysNamespace = cmp.Or(o.leaseNamespace, o.namespace)
	if o.leaseNamespace == "" {
		o.leaseNamespace = o.ownNamespace()
		o.leaseMoved = o.leaseNamespace != o.namespace
	}
	for name, value := range map[string]int64{
		"max-concurrent-runs": int64(o.maxRuns), "apply-batch": int64(o.applyBatch), "drift-batch": int64(o.driftBatch),
		"max-queued-runs": int64(o.maxQueuedRuns), "max-concurrent-reconciles": int64(o.reconciles),
		"max-concurrent-drains": int64(o.maxDrains), "machine-overshoot": int64(o.overshoot),
		"run-timeout": int64(o.runTimeout), "run-queue-timeout": int64(o.jobs.queueTimeout),
		"interrupt-grace": int64(o.interruptGrace), "drift-interval": int64(o.driftInterval),
		"orphan-grace-period": int64(o.orphanGrace),
		"sync-period":         int64(o.syncPeriod), "kube-api-burst": int64(o.burst), "kube-api-qps": int64(o.qps),
	} {
		if value <= 0 {
			return fmt.Errorf("--%s must be positive", name)
		}
	}
	if err := o.checkTimes(); err != nil {
		return err
	}
	var err error
	if err := o.checkMemory(memlimit.FromCgroup); err != nil {
		return err
	}
	if len(o.controllers.chosen()) == 0 {
		return fmt.Errorf("--controllers %q selects no controller; start with '*' to exclude some", o.controllers.String())
	}
	if o.tls, err = serving(o.tlsMinVersion, o.tlsCipherSuites); err != nil {
		return err
	}
	if o.webhookPort < 1 || o.webhookPort > 65535 {
		return fmt.Errorf("invalid --webhook-port %d: must be between 1 and 65535; or set --webhook-enabled=false",
			o.webhookPort)
	}
	if o.engine != "" && o.engine != "tofu" && o.engine != "terraform" {
		return fmt.Errorf("invalid --engine %q; use tofu or terraform, or omit it", o.engine)
	}
	return errors.Join(o.checkWarm(), o.checkPprof(), o.checkCluster(), o.checkJobs(), o.checkJoining())
}

// checkWarm validates the flags for warm providers.
func (o *options) checkWarm() error {
	if o.warmProviders < 0 {
		return fmt.Errorf("invalid --warm-providers %d; use a number of plugins, or 0 to start one for each run",
			o.warmProviders)
	}
	if o.warmMemory.Sign() <= 0 {
		return fmt.Errorf("invalid --warm-providers-memory %s; use an amount such as 1Gi, or disable warm plugins with "+
			"--warm-providers=0", o.warmMemory.String())
	}
	return nil
}

// checkPprof rejects a non-loopback address for profiles.
func (o *options) checkPprof() error {
	if o.pprofAddress == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(o.pprofAddress)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("invalid --pprof-bind-address %q; use a loopback address such as 127.0.0.1:6060, because anyone "+
			"who reaches it can read profiles", o.pprofAddress)
	}
	return nil
}

// serving returns a function that applies these restrictions to a server's TLS configuration.
func serving(minVersion, suites string) (func(*tls.Config), error) {
	lowest, err := cliflag.TLSVersion(minVersion)
	if err != nil {
		return nil, fmt.Errorf("--tls-min-version: %w; use one of %s", err, strings.Join(cliflag.TLSPossibleVersions(), ", "))
	}
	var chosen []uint16
	if suites != "" {
		if chosen, err = cliflag.TLSCipherSuites(strings.Split(suites, ",")); err != nil {
			return nil, fmt.Errorf("--tls-cipher-suites: %w; use some of %s", err,
				strings.Join(cliflag.PreferredTLSCipherNames(), ", "))
		}
	}
	return func(config *tls.Config) {
		if minVersion != "" {
			config.MinVersion = lowest
		}
		config.CipherSuites = chosen
	}, nil
}

// checkCluster validates the flags for the cluster.
func (o *options) checkCluster() error {
	if problems := validation.IsValidLabelValue(o.clusterID); len(problems) > 0 {
		return fmt.Errorf("invalid --cluster-id %q: not a valid label value: %s", o.clusterID, strings.Join(problems, ", "))
	}
	for name := range o.givenClusterValues {
		if module.PerMachine(name) || !slices.Contains(module.ClusterValueNames(), name) {
			return fmt.Errorf("invalid --cluster-fact %q; use architecture, networkResourceGroup, platform, project, region "+
				"or resourceGroup", name)
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

// clusterValues returns the cluster values. The architecture defaults to this process's.
func (o *options) clusterValues() module.ClusterValues {
	values := module.ClusterValues{module.ValueArchitecture: runtime.GOARCH}
	maps.Copy(values, o.givenClusterValues)
	values[module.ValueClusterID] = o.clusterID
	return values
}

// checkTimes validates the shutdown and leader election timing.
func (o *options) checkTimes() (err error) {
	if o.shutdownGrace < 0 {
		return fmt.Errorf("invalid --shutdown-grace %s: must not be negative; use 0s to interrupt all runs at once",
			o.shutdownGrace)
	}
	o.timing, err = leadership.NewTiming(o.leaseDuration, o.renewDeadline, o.retryPeriod)
	return err
}

// idleRuns is how many further runs may wait for the infrastructure. Jobs would use the cluster's
// resources meanwhile.
func (o *options) idleRuns() int {
	if o.jobs.place == inJobs {
		return 0
	}
	return o.maxRuns
}

// stopTimeout bounds how long the manager may take to stop. The Pod's grace period must be longer.
func (o *options) stopTimeout() time.Duration { return o.shutdownGrace + o.interruptGrace + stopSlack }

// list is a flag that may be repeated.
type list []string

// String implements flag.Value.
func (l *list) String() string { return strings.Join(*l, ",") }

// Set implements flag.Value.
func (l *list) Set(text string) error {
	if text == "" {
		return errors.New("must not be empty")
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
		return errors.New("must be NAME=VALUE")
	}
	if *a == nil {
		*a = assignments{}
	}
	(*a)[name] = value
	return nil
}
