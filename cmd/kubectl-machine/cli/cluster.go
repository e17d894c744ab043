package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/machine-iac/machine-iac-operator/internal/inspect"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// requestTimeout is the default timeout of one request to the API server.
const requestTimeout = 30 * time.Second

// completionTimeout limits how long a shell waits for names.
const completionTimeout = 3 * time.Second

// ClusterFlags are kubectl's flags for a cluster.
type ClusterFlags struct {
	*genericclioptions.ConfigFlags
	// AllNamespaces reads all namespaces.
	AllNamespaces bool

	stateKeyFile string
}

// Register adds the flags of every command that reads a cluster. namespaceUsage is the help of
// --namespace; empty if the command has its own flag of that name.
func (f *ClusterFlags) Register(command *cobra.Command, namespaceUsage string) {
	f.ConfigFlags = genericclioptions.NewConfigFlags(true)
	f.Timeout = ptr.To(requestTimeout.String())
	f.CacheDir = nil // there is no discovery to cache
	if namespaceUsage == "" {
		f.Namespace = nil
	}
	flags := command.Flags()
	f.AddFlags(flags)
	// These fail only for an unknown flag, which the tests would catch.
	if f.Namespace != nil {
		flags.Lookup("namespace").Usage = namespaceUsage
		_ = command.RegisterFlagCompletionFunc("namespace", f.Complete(NamesOf("Namespace")))
	}
	for name, list := range map[string]func(clientcmdapi.Config) []string{"context": contexts, "cluster": clusters,
		"user": users} {
		_ = command.RegisterFlagCompletionFunc(name, f.completeFromKubeconfig(list))
	}
	for _, name := range []string{"as", "as-group", "as-uid", "as-user-extra", "proxy-url", "request-timeout", "server",
		"tls-server-name", "token"} {
		_ = command.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
}

// RegisterAllNamespaces adds -A to a command that has -n.
func (f *ClusterFlags) RegisterAllNamespaces(command *cobra.Command) {
	command.Flags().BoolVarP(&f.AllNamespaces, "all-namespaces", "A", false, "Read all namespaces.")
	command.MarkFlagsMutuallyExclusive("namespace", "all-namespaces")
}

// RegisterStateKey adds the flag of commands that read stored states.
func (f *ClusterFlags) RegisterStateKey(command *cobra.Command) {
	command.Flags().StringVar(&f.stateKeyFile, "state-key-file", "",
		"The manager's --state-key-file, if states are encrypted: a file, or a folder whose first key encrypts.")
}

// StateOptions returns the options for reading and writing states.
func (f *ClusterFlags) StateOptions() (state.Options, error) {
	if f.stateKeyFile == "" {
		return state.Options{}, nil
	}
	keys, err := state.ReadKeys(f.stateKeyFile)
	if err != nil {
		return state.Options{}, fmt.Errorf("--state-key-file: %w", err)
	}
	return state.Options{Keys: keys}, nil
}

// Configuration returns how to reach the cluster, and the namespace to read, empty for all.
func (f *ClusterFlags) Configuration() (*rest.Config, string, error) {
	log.SetLogger(logr.Discard()) // errors and output say what users need to know
	loader := f.ToRawKubeConfigLoader()
	config, err := loader.ClientConfig()
	if err == nil && f.fallsBack(config) {
		err = errors.New("there is no kubeconfig")
	}
	if err != nil {
		return nil,
			"", fmt.Errorf("finding the cluster: %w; name a kubeconfig with --kubeconfig, or one of its contexts with --context",
				err)
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("finding the namespace: %w", err)
	}
	if f.AllNamespaces {
		namespace = ""
	}
	config.QPS = -1 // a person reads little, and the API server protects itself
	return config, namespace, nil
}

// Connect returns a client for the cluster, and the namespace to read.
func (f *ClusterFlags) Connect() (client.Client, string, error) {
	config, namespace, err := f.Configuration()
	if err != nil {
		return nil, "", err
	}
	live, err := inspect.NewClient(config)
	return live, namespace, err
}

// Cluster returns the cluster in the namespace to read.
func (f *ClusterFlags) Cluster() (*inspect.Cluster, error) {
	config, namespace, err := f.Configuration()
	if err != nil {
		return nil, err
	}
	options, err := f.StateOptions()
	if err != nil {
		return nil, err
	}
	return inspect.New(config, namespace, options)
}

// fallsBack reports whether no cluster is configured, so that kubectl would try a local port.
func (f *ClusterFlags) fallsBack(config *rest.Config) bool {
	raw, err := f.ToRawKubeConfigLoader().RawConfig()
	return err == nil && clientcmdapi.IsConfigEmpty(&raw) && *f.APIServer == "" &&
		config.Host == clientcmd.ClusterDefaults.Server
}

// Completion completes words in a shell.
type Completion = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// Names reads the names of something.
type Names func(context.Context, *inspect.Cluster) ([]string, error)

// Complete offers names from the cluster, or none if it is unreachable.
func (f *ClusterFlags) Complete(read Names) Completion {
	return func(command *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
		cluster, err := f.Cluster()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(command.Context(), completionTimeout)
		defer cancel()
		found, err := read(ctx, cluster)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return slices.DeleteFunc(found,
			func(name string) bool { return slices.Contains(given, name) }), cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteOne is Complete for a command that takes one name.
func (f *ClusterFlags) CompleteOne(read Names) Completion {
	offer := f.Complete(read)
	return func(command *cobra.Command, given []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(given) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return offer(command, given, begun)
	}
}

// completeFromKubeconfig offers names from the kubeconfig.
func (f *ClusterFlags) completeFromKubeconfig(list func(clientcmdapi.Config) []string) Completion {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		raw, err := f.ToRawKubeConfigLoader().RawConfig()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return list(raw), cobra.ShellCompDirectiveNoFileComp
	}
}

func contexts(c clientcmdapi.Config) []string { return slices.Sorted(maps.Keys(c.Contexts)) }
func clusters(c clientcmdapi.Config) []string { return slices.Sorted(maps.Keys(c.Clusters)) }
func users(c clientcmdapi.Config) []string    { return slices.Sorted(maps.Keys(c.AuthInfos)) }
