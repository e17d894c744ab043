package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/machine-iac/machine-iac-operator/internal/inspect"
)

// completionTimeout bounds how long a shell waits for names.
const completionTimeout = 3 * time.Second

// clusterFlags say which cluster a command asks, and as whom.
type clusterFlags struct {
	kubeconfig    string
	context       string
	user          string
	namespace     string
	allNamespaces bool
	timeout       time.Duration
}

// register adds the flags that every command has which asks a cluster.
func (f *clusterFlags) register(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "File that tells how to reach the cluster. Default: the KUBECONFIG variable, or ~/.kube/config.")
	flags.StringVar(&f.context, "context", "", "Context of the kubeconfig. Default: its current one.")
	flags.StringVar(&f.user, "as", "", "User to ask as, where you may impersonate.")
	flags.DurationVar(&f.timeout, "request-timeout", 30*time.Second, "How long the cluster may take to answer.")
	// Each fails for a flag that is not there only, which the tests would see.
	_ = command.RegisterFlagCompletionFunc("context", f.completeContexts)
	for _, name := range []string{"as", "request-timeout"} {
		_ = command.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
}

// registerNamespace adds -n. A command may have it from elsewhere.
func (f *clusterFlags) registerNamespace(command *cobra.Command) {
	command.Flags().StringVarP(&f.namespace, "namespace", "n", "", "Namespace of the Machines. Default: the context's.")
	_ = command.RegisterFlagCompletionFunc("namespace", f.complete(namespaceNames))
}

// registerAllNamespaces adds -A to a command that has -n.
func (f *clusterFlags) registerAllNamespaces(command *cobra.Command) {
	command.Flags().BoolVarP(&f.allNamespaces, "all-namespaces", "A", false, "Ask about all namespaces.")
	command.MarkFlagsMutuallyExclusive("namespace", "all-namespaces")
}

func (f *clusterFlags) config() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: f.context}
	overrides.AuthInfo.Impersonate = f.user
	overrides.Context.Namespace = f.namespace
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
}

// connect answers a client for the cluster and the namespace to ask about, which is empty for all.
func (f *clusterFlags) connect() (client.Client, string, error) {
	log.SetLogger(logr.Discard()) // what concerns people is in errors and on the output
	config, err := f.config().ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("finding the cluster: %w; name a kubeconfig with --kubeconfig, or one of its contexts with --context", err)
	}
	namespace, _, err := f.config().Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("finding the namespace: %w", err)
	}
	if f.allNamespaces {
		namespace = ""
	}
	config.QPS = -1 // a person asks little, and the API server protects itself
	live, err := inspect.NewClient(config)
	return live, namespace, err
}

// bounded ends a command that the cluster keeps waiting.
func (f *clusterFlags) bounded(ctx context.Context) (context.Context, context.CancelFunc, error) {
	if f.timeout <= 0 {
		return nil, nil, fmt.Errorf("--request-timeout is %s; it must be positive", f.timeout)
	}
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	return ctx, cancel, nil
}

// completion offers words to a shell.
type completion = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// names reads the names of something in a namespace; of all where it is empty.
type names func(ctx context.Context, cluster client.Client, namespace string) ([]string, error)

// complete offers names from the cluster, and none where it cannot be asked.
func (f *clusterFlags) complete(read names) completion {
	return func(command *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
		cluster, namespace, err := f.connect()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(command.Context(), completionTimeout)
		defer cancel()
		found, err := read(ctx, cluster, namespace)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return slices.DeleteFunc(found, func(name string) bool { return slices.Contains(given, name) }), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeOne is complete for a command that takes one name.
func (f *clusterFlags) completeOne(read names) completion {
	offer := f.complete(read)
	return func(command *cobra.Command, given []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(given) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return offer(command, given, begun)
	}
}

func namespaceNames(ctx context.Context, cluster client.Client, _ string) ([]string, error) {
	list := &corev1.NamespaceList{}
	err := cluster.List(ctx, list)
	var found []string
	for i := range list.Items {
		found = append(found, list.Items[i].Name)
	}
	return found, err
}

func (f *clusterFlags) completeContexts(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	raw, err := f.config().RawConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var found []string
	for name := range raw.Contexts {
		found = append(found, name)
	}
	slices.Sort(found)
	return found, cobra.ShellCompDirectiveNoFileComp
}
