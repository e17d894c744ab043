package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/machine-iac/machine-iac-operator/install"
	"github.com/machine-iac/machine-iac-operator/internal/operator"
	"github.com/machine-iac/machine-iac-operator/internal/selfsigned"
)

const (
	serviceAccountNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
	// leaseName is the name of the leader's Lease. machine-api-operator uses it, too, so that the
	// two never run side by side.
	leaseName = "machine-api-operator"

	// The lease is as long as machine-api-operator's, so that a restarting API server does not
	// change the leader.
	leaseDuration = 137 * time.Second
	renewDeadline = 107 * time.Second
	retryPeriod   = 26 * time.Second

	// On a single-node control plane the API server is unavailable while it restarts.
	singleNodeLease = 270 * time.Second
	singleNodeRenew = 240 * time.Second
	singleNodeRetry = 60 * time.Second
)

func init() { metrics.Registry.MustRegister(operator.Collectors()...) }

// options are the flags.
type options struct {
	kubeconfig     string
	namespace      string
	image          string
	imagesFile     string
	podName        string
	release        string
	leaderElect    bool
	metricsAddress string
	metricsCertDir string
	healthAddress  string
	showVersion    bool
}

func (o *options) bind(flags *flag.FlagSet) {
	flags.StringVar(&o.kubeconfig, "kubeconfig", "",
		"Path of the kubeconfig file. Default: the KUBECONFIG variable, or the Pod's service account.")
	flags.StringVar(&o.namespace, "namespace", os.Getenv("POD_NAMESPACE"),
		"Namespace of the controllers and their Machines. Default: the Pod's own.")
	flags.StringVar(&o.image, "image", "",
		"Image of the controllers. Default: machineAPIOperator in the ConfigMap "+operator.ImagesName+"; without it, the "+
			"image of the Pod named by the POD_NAME variable.")
	flags.StringVar(&o.imagesFile, "images-json", "",
		"File with a release's images as JSON: its machineAPIOperator is the default of --image. The ConfigMap "+
			operator.ImagesName+" takes precedence.")
	flags.StringVar(&o.release, "release-version", os.Getenv("RELEASE_VERSION"),
		"Version to report once it is rolled out. Default: the RELEASE_VERSION variable, or this program's version.")
	flags.BoolVar(&o.leaderElect, "leader-elect", true, "Enable leader election: do nothing until this process leads.")
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", ":8443",
		"Address of the metrics endpoint, served over TLS to callers that may get /metrics. 0 disables it.")
	flags.StringVar(&o.metricsCertDir, "metrics-cert-dir", "",
		"Folder with tls.crt and tls.key for the metrics endpoint. Without these files: one generated at start.")
	flags.StringVar(&o.healthAddress, "health-addr", ":9440", "Address of /healthz and /readyz.")
	flags.BoolVar(&o.showVersion, "version", false, "Print the version and exit.")
}

// complete sets defaults from the environment.
func (o *options) complete() error {
	if o.release == "" {
		o.release = version
	}
	o.podName = os.Getenv("POD_NAME")
	if o.imagesFile != "" && o.image == "" {
		content, err := os.ReadFile(o.imagesFile)
		if err != nil {
			return fmt.Errorf("reading --images-json: %w", err)
		}
		if o.image, err = operator.ImageOf(content); err != nil {
			return fmt.Errorf("invalid --images-json %s: %w", o.imagesFile, err)
		}
	}
	if o.namespace != "" {
		return nil
	}
	own, err := os.ReadFile(serviceAccountNamespace)
	if err != nil {
		return errors.New("no namespace to install to: set --namespace or POD_NAMESPACE, or run in a Pod")
	}
	o.namespace = strings.TrimSpace(string(own))
	return nil
}

// run serves until ctx ends. It restarts itself for settings that only apply at start.
func run(ctx context.Context, o options) error {
	for {
		again, err := serve(ctx, o)
		if err != nil || !again {
			return err
		}
		ctrl.Log.Info("Restarting because the cluster's TLS profile has changed")
	}
}

// serve serves until ctx ends, or until it has to restart.
func serve(ctx context.Context, o options) (again bool, err error) {
	connection, err := o.connection()
	if err != nil {
		return false, err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, machinev1beta1.Install,
		configv1.Install} {
		if err := add(scheme); err != nil {
			return false, fmt.Errorf("building the scheme: %w", err)
		}
	}
	live, err := client.New(connection, client.Options{Scheme: scheme})
	if err != nil {
		return false, fmt.Errorf("creating a client without a cache: %w", err)
	}
	start, err := operator.ReadStart(ctx, live)
	if err != nil {
		return false, fmt.Errorf("reading the cluster's configuration: %w", err)
	}
	mgr, err := o.manager(connection, live, start)
	if err != nil {
		return false, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var restart atomic.Bool
	keeper := operator.New(operator.Options{
		Namespace: o.namespace, Version: o.release, Image: o.image, PodName: o.podName, TLS: start.TLS,
		Restart: func() {
			restart.Store(true)
			stop()
		},
		Manager:   managerProgram(),
		Manifests: install.FS, Live: live, Cached: mgr.GetClient(), Recorder: mgr.GetEventRecorder("machine-api-operator"),
	})
	if err := keeper.SetupWithManager(mgr); err != nil {
		return false, err
	}
	ctrl.Log.Info("Starting", "version", version, "release", o.release, "namespace", o.namespace)
	if err := mgr.Start(ctx); err != nil {
		return false, fmt.Errorf("running the operator: %w", err)
	}
	return restart.Load(), nil
}

// connection returns the configuration of the client for the API server.
func (o *options) connection() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	connection, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the API server: %w; run in a Pod, or set --kubeconfig", err)
	}
	connection.UserAgent = "machine-api-operator/" + version
	return connection, nil
}

// manager returns the operator's manager.
func (o *options) manager(connection *rest.Config, live client.Client, start operator.Start) (manager.Manager, error) {
	restrict, err := start.Serving()
	if err != nil {
		return nil, err
	}
	certificate := func(config *tls.Config) {
		config.GetCertificate = selfsigned.Unless(selfsigned.FromFolder(o.metricsCertDir))
	}
	lease, renew, retry := leaseTimes(start)
	mgr, err := ctrl.NewManager(connection, manager.Options{
		Scheme: live.Scheme(),
		Cache:  operator.CacheOptions(o.namespace, live),
		Client: client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		Metrics: metricsserver.Options{
			BindAddress: o.metricsAddress, SecureServing: true, FilterProvider: filters.WithAuthenticationAndAuthorization,
			TLSOpts: []func(*tls.Config){restrict, certificate},
		},
		HealthProbeBindAddress: o.healthAddress,
		// Tests run several operators in a process.
		Controller:     config.Controller{SkipNameValidation: ptr.To(true)},
		LeaderElection: o.leaderElect, LeaderElectionID: leaseName, LeaderElectionNamespace: o.namespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &lease, RenewDeadline: &renew, RetryPeriod: &retry,
	})
	if err != nil {
		return nil, fmt.Errorf("creating the manager: %w", err)
	}
	for name, add := range map[string]func(string, healthz.Checker) error{"health": mgr.AddHealthzCheck,
		"readiness": mgr.AddReadyzCheck} {
		if err := add("ping", healthz.Ping); err != nil {
			return nil, fmt.Errorf("adding the %s check: %w", name, err)
		}
	}
	return mgr, nil
}

// leaseTimes returns the lease duration, the renew deadline and the retry period.
func leaseTimes(start operator.Start) (lease, renew, retry time.Duration) {
	if start.SingleNode {
		return singleNodeLease, singleNodeRenew, singleNodeRetry
	}
	return leaseDuration, renewDeadline, retryPeriod
}

// managerProgram returns the controllers' program, which is beside this one in the image, or "".
func managerProgram() string {
	own, err := os.Executable()
	if err != nil {
		return ""
	}
	beside := filepath.Join(filepath.Dir(own), "machine-controllers")
	if _, err := os.Stat(beside); err != nil {
		return ""
	}
	return beside
}
