package main

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/machine-iac/machine-iac-operator/actuators/iac"
	"github.com/machine-iac/machine-iac-operator/internal/engine/tofu"
	"github.com/machine-iac/machine-iac-operator/internal/leadership"
	"github.com/machine-iac/machine-iac-operator/internal/module"
)

const (
	serviceAccountNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
	// stopSlack is what the manager takes to stop beyond the time that its engines have.
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

	webhooks       bool
	webhookPort    int
	webhookCertDir string
	clusterID      string
	clusterFacts   assignments

	workDir           string
	engine            string
	enginePath        string
	engineVersion     string
	engineInstall     bool
	engineEnvironment assignments
	pulumi            string
	pulumiPlugins     string
	moduleDirs        list
	moduleUpdates     iac.ModuleUpdates
	moduleSources     list
	providerMirror    string
	allowDownloads    bool

	maxRuns        int
	warmProviders  int
	maxDriftRuns   int
	maxQueuedRuns  int
	runTimeout     time.Duration
	interruptGrace time.Duration
	driftInterval  time.Duration
	reconciles     int
	maxDrains      int

	showVersion bool
}

func (o *options) bind(flags *flag.FlagSet) {
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "File that tells how to reach the API server. Default: the KUBECONFIG variable, or the Pod's service account.")
	flags.StringVar(&o.namespace, "namespace", os.Getenv("POD_NAMESPACE"), "Namespace whose Machines are served; their state is kept there too. Default: the Pod's own.")
	flags.Float64Var(&o.qps, "kube-api-qps", 1000, "Requests per second to the API server, on average. It protects itself by priority and fairness; a lower value slows large MachineSets down.")
	flags.IntVar(&o.burst, "kube-api-burst", 2000, "Requests to the API server in a burst.")
	flags.DurationVar(&o.syncPeriod, "sync-period", 10*time.Minute, "How often every Machine is looked at although nothing happened.")

	o.controllers = selection{"*"}
	flags.Var(&o.controllers, "controllers", "Controllers to run, joined by commas: '*' for all, a name for one, '-name' for all of '*' but that one.")

	flags.BoolVar(&o.leaderElect, "leader-elect", true, "Do nothing until this process is the leader. Without it, make sure that no second process serves the namespace.")
	flags.StringVar(&o.leaseNamespace, "leader-elect-resource-namespace", "", "Namespace of the leader's Lease. Default: --namespace.")
	flags.DurationVar(&o.leaseDuration, "leader-elect-lease-duration", leadership.DefaultLease, "How long a leader that went silent keeps others waiting, in whole seconds. By then its engines are dead.")
	flags.DurationVar(&o.renewDeadline, "leader-elect-renew-deadline", 0, "For how long after its last renewal of the Lease a leader acts. What is left of the lease duration is for its engines' end: a third of it without heartbeats has them interrupted, and half of it later they are killed. Default: 107/137 of the lease duration.")
	flags.DurationVar(&o.retryPeriod, "leader-elect-retry-period", 0, "How often a leader renews the Lease, and others look at it. Default: 26/137 of the lease duration.")

	flags.StringVar(&o.metricsAddress, "metrics-bind-address", ":8443", "Address of the metrics, served over TLS to those who may get /metrics. 0 turns them off.")
	flags.StringVar(&o.metricsCertDir, "metrics-cert-dir", "", "Folder with tls.crt and tls.key for the metrics. Default: a certificate that is made at start.")
	flags.StringVar(&o.healthAddress, "health-addr", ":9440", "Address of /healthz and /readyz.")

	flags.BoolVar(&o.webhooks, "webhook-enabled", true, "Serve the webhooks that complete and check Machines, MachineSets and MachineHealthChecks. Every replica serves them, leader or not.")
	flags.IntVar(&o.webhookPort, "webhook-port", 9443, "Port of the webhooks, served over TLS.")
	flags.StringVar(&o.webhookCertDir, "webhook-cert-dir", "", "Folder with tls.crt and tls.key for the webhooks, kept up to date by somebody else, who also tells the API server whom to trust. Default: both are done here, with the Secret "+webhookSecret+".")
	flags.StringVar(&o.clusterID, "cluster-id", "", "Name of the cluster's infrastructure: the label machine.openshift.io/cluster-api-cluster of Machines that are created without it. Default: what the cluster's Infrastructure says; where there is none, they go without.")

	flags.Var(&o.clusterFacts, "cluster-fact", "NAME=VALUE that is known of the cluster, for the defaults of fields that a providerSpec lacks: architecture, networkResourceGroup, project, region or resourceGroup; may be repeated. Default: what the cluster's Infrastructure says.")

	flags.StringVar(&o.workDir, "work-dir", "/var/lib/machine-iac", "Private folder for modules and runs. It holds secrets while runs execute: use memory or an encrypted disk.")
	flags.StringVar(&o.engine, "engine", "", "tofu or terraform, looked for on PATH. Default: the first of the two that is there.")
	flags.StringVar(&o.enginePath, "engine-path", "", "File of the engine, instead of looking for it on PATH.")
	flags.StringVar(&o.engineVersion, "engine-version", tofu.DefaultConstraint, "Versions of the engine that are accepted.")
	flags.BoolVar(&o.engineInstall, "engine-install", false, "Download a released Terraform when no engine is found.")
	flags.StringVar(&o.pulumi, "pulumi", "", "File of Pulumi's CLI, with the hosts of programs' languages beside it. Default: the one on PATH; where there is none, Machines of stacks wait.")
	flags.StringVar(&o.pulumiPlugins, "pulumi-plugins", "", "Folder with Pulumi's plugins, as 'pulumi plugin install' lays them out. There are no others: none is downloaded.")
	flags.Var(&o.engineEnvironment, "engine-env", "NAME=VALUE that every engine gets, such as a proxy; may be repeated. It wins over what the cluster's configuration says. Nothing else of this process's environment reaches an engine.")
	flags.Var(&o.moduleDirs, "module-dir", "Folder of a provider module, or of several, beside those that are built in; may be repeated.")
	flags.Var(&o.moduleSources, "module-source", "Provider module in an archive, allowed by its digest: oci://registry/repository@sha256:..., https://host/module.tar.gz@sha256:... or file:///module.tar.gz@sha256:...; may be repeated.")
	o.moduleUpdates = iac.ModuleUpdatesHold
	flags.Var(&o.moduleUpdates, "module-updates", "What becomes of Machines whose module has changed: Hold keeps them with the content that they were made with, InPlace brings them to the new one where that replaces nothing. The annotation machine-iac.io/module-updates of a Machine wins.")
	flags.StringVar(&o.providerMirror, "provider-mirror", "", "Folder with the providers, laid out as a filesystem mirror.")
	flags.BoolVar(&o.allowDownloads, "allow-provider-downloads", false, "Download providers that the mirror lacks, when a module is first used.")

	flags.IntVar(&o.maxRuns, "max-concurrent-runs", 8, "Engine runs at a time.")
	flags.IntVar(&o.warmProviders, "warm-providers", 0, "Provider plugins that are kept running between runs, each used by one run at a time with one set of credentials. Saves most of a run's CPU time; engines call the way in unsupported. 0 starts them anew for each run.")
	flags.IntVar(&o.maxDriftRuns, "max-concurrent-drift-checks", 0, "How many of these may be drift checks. Default: a quarter, at least one.")
	flags.IntVar(&o.maxQueuedRuns, "max-queued-runs", 10000, "Engine runs that wait; a Machine beyond that asks again later.")
	flags.DurationVar(&o.runTimeout, "run-timeout", 30*time.Minute, "How long one engine run may take before it is interrupted.")
	flags.DurationVar(&o.interruptGrace, "interrupt-grace", 2*time.Minute, "How long an interrupted engine may take to save its state before it is killed.")
	flags.DurationVar(&o.driftInterval, "drift-interval", time.Hour, "How often an instance is compared with what it should be, a tenth more or less.")
	flags.IntVar(&o.reconciles, "max-concurrent-reconciles", 10, "Machines that are reconciled at a time. No reconcile waits for a run.")
	flags.IntVar(&o.maxDrains, "max-concurrent-drains", 10, "Nodes that are drained at a time. One that cannot be drained waits its turn behind the others.")

	flags.BoolVar(&o.showVersion, "version", false, "Print the version and exit.")
}

// complete fills in what depends on the machine, and refuses what cannot work.
func (o *options) complete() error {
	if o.namespace == "" {
		own, err := os.ReadFile(serviceAccountNamespace)
		if err != nil {
			return errors.New("no namespace to serve: set --namespace, or POD_NAMESPACE, or run in a Pod")
		}
		o.namespace = strings.TrimSpace(string(own))
	}
	if o.leaseNamespace == "" {
		o.leaseNamespace = o.namespace
	}
	for name, value := range map[string]int64{
		"max-concurrent-runs": int64(o.maxRuns), "max-queued-runs": int64(o.maxQueuedRuns), "max-concurrent-reconciles": int64(o.reconciles),
		"max-concurrent-drains": int64(o.maxDrains),
		"run-timeout":           int64(o.runTimeout), "interrupt-grace": int64(o.interruptGrace), "drift-interval": int64(o.driftInterval),
		"sync-period": int64(o.syncPeriod), "kube-api-burst": int64(o.burst), "kube-api-qps": int64(o.qps),
	} {
		if value <= 0 {
			return fmt.Errorf("--%s is zero or less; give it a value above zero", name)
		}
	}
	var err error
	if o.timing, err = leadership.NewTiming(o.leaseDuration, o.renewDeadline, o.retryPeriod); err != nil {
		return err
	}
	if len(o.controllers.chosen()) == 0 {
		return fmt.Errorf("--controllers is %q, which leaves none; begin with '*' to take some away", o.controllers.String())
	}
	if o.webhookPort < 1 || o.webhookPort > 65535 {
		return fmt.Errorf("--webhook-port is %d; choose one from 1 to 65535, or --webhook-enabled=false", o.webhookPort)
	}
	if o.engine != "" && o.engine != "tofu" && o.engine != "terraform" {
		return fmt.Errorf("--engine is %q; choose tofu or terraform, or leave it out", o.engine)
	}
	return o.checkCluster()
}

// checkCluster refuses what the flags cannot say of a cluster.
func (o *options) checkCluster() error {
	if problems := validation.IsValidLabelValue(o.clusterID); len(problems) > 0 {
		return fmt.Errorf("--cluster-id is %q, which is no value of a label: %s", o.clusterID, strings.Join(problems, ", "))
	}
	for name := range o.clusterFacts {
		if module.PerMachine(name) || !slices.Contains(module.ClusterValueNames(), name) {
			return fmt.Errorf("--cluster-fact names %q, which is no fact of a cluster; name architecture, networkResourceGroup, project, region or resourceGroup", name)
		}
	}
	return nil
}

// take takes what a cluster says of itself for what no flag says.
func (o *options) take(said module.ClusterValues) {
	if o.clusterID == "" {
		o.clusterID = said[module.ValueClusterID]
	}
	facts := assignments{}
	maps.Copy(facts, said)
	delete(facts, module.ValueClusterID)
	maps.Copy(facts, o.clusterFacts)
	o.clusterFacts = facts
}

// facts answers what is known of the cluster. Its Nodes are taken for such as this process runs on, unless the flag says otherwise.
func (o *options) facts() module.ClusterValues {
	facts := module.ClusterValues{module.ValueArchitecture: runtime.GOARCH}
	maps.Copy(facts, o.clusterFacts)
	facts[module.ValueClusterID] = o.clusterID
	return facts
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

// String implements flag.Value. Values may be secret, so only names are shown.
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
