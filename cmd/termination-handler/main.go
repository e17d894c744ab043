// Command termination-handler runs on each Node with a Spot instance. It polls the cloud's metadata
// service, and marks the Node when the cloud is about to terminate the instance.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/machine-iac/machine-iac-operator/internal/termination"
)

// version is set by the linker.
var version = "development"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err := start(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "termination-handler:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	kubeconfig  string
	nodeName    string
	cloud       termination.Cloud
	metadataURL string
	interval    int
	showVersion bool
}

// newFlags returns all flags of the command. docs/spot.md lists them.
func newFlags(o *options, logging *zap.Options) *flag.FlagSet {
	flags := flag.NewFlagSet("termination-handler", flag.ContinueOnError)
	flags.StringVar(&o.kubeconfig, "kubeconfig", "",
		"Path of the kubeconfig file. Default: the KUBECONFIG variable, or the Pod's service account.")
	flags.StringVar(&o.nodeName, "node-name", os.Getenv("NODE_NAME"),
		"Name of the Node that the handler runs on and marks. Default: the NODE_NAME variable.")
	flags.Var(&o.cloud, "cloud",
		"Cloud whose metadata service is polled: aws, azure or gcp. Default: derived from the Node's provider ID.")
	flags.StringVar(&o.metadataURL, "metadata-url", "",
		"URL of the metadata service. Default: the cloud's documented address.")
	flags.IntVar(&o.interval, "poll-interval-seconds", int(termination.DefaultInterval/time.Second),
		"How often the metadata service is polled, in seconds.")
	flags.String("namespace", "", "Ignored. Accepted for compatibility with machine-api-operator.")
	flags.Bool("logtostderr", true,
		"Ignored: logs always go to stderr. Accepted for compatibility with machine-api-operator.")
	flags.Int("v", 0, "Ignored. Accepted for compatibility with machine-api-operator.")
	flags.BoolVar(&o.showVersion, "version", false, "Print the version and exit.")
	logging.BindFlags(flags)
	return flags
}

func (o *options) check(arguments []string) error {
	switch {
	case len(arguments) > 0:
		return fmt.Errorf("unexpected argument %q; see --help for the flags", arguments[0])
	case o.nodeName == "":
		return errors.New("no Node: set --node-name or NODE_NAME to the name of this process's Node")
	case o.interval < 1:
		return fmt.Errorf("invalid --poll-interval-seconds %d: must be at least 1", o.interval)
	}
	return nil
}

func start(ctx context.Context, arguments []string) error {
	var o options
	var logging zap.Options
	flags := newFlags(&o, &logging)
	err := flags.Parse(arguments)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	if o.showVersion {
		fmt.Println(version)
		return nil
	}
	if err := o.check(flags.Args()); err != nil {
		return err
	}
	log.SetLogger(zap.New(zap.UseFlagOptions(&logging)))
	return run(ctx, o)
}

// run serves until ctx ends. It returns an error if waiting cannot help, such as for a missing
// kubeconfig.
func run(ctx context.Context, o options) error {
	if _, err := o.connect(); err != nil {
		return err
	}
	logger := log.Log.WithName("termination-handler").WithValues("node", o.nodeName)
	node := &termination.Node{Name: o.nodeName, Connect: o.connect}
	if o.cloud == "" {
		cloud, err := node.Cloud(ctx, logger)
		if err != nil && ctx.Err() != nil {
			return nil // it was stopped
		}
		if err != nil {
			return err
		}
		o.cloud = cloud
	}
	source, err := termination.NewSource(o.cloud, termination.SourceOptions{URL: o.metadataURL, NodeName: o.nodeName})
	if err != nil {
		return err
	}
	logger.Info("Starting", "version", version, "cloud", o.cloud)
	termination.New(termination.Options{Source: source, Node: node, Interval: time.Duration(o.interval) * time.Second,
		Logger: logger}).Run(ctx)
	return nil
}

// connect returns a client for Nodes with the kubeconfig's current credentials.
func (o *options) connect() (typedcorev1.NodeInterface, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the API server: %w; set KUBECONFIG or --kubeconfig to the kubelet's kubeconfig, "+
			"or run in a Pod with a service account", err)
	}
	config.UserAgent = "machine-iac-termination-handler/" + version
	client, err := typedcorev1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("reading the credentials for the API server: %w", err)
	}
	return client.Nodes(), nil
}
