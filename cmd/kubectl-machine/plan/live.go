package plan

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/cmd/kubectl-machine/cli"
	"github.com/machine-iac/machine-iac-operator/internal/desired"
	"github.com/machine-iac/machine-iac-operator/internal/inspect"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/store"
	"github.com/machine-iac/machine-iac-operator/internal/plan/live"
	"github.com/machine-iac/machine-iac-operator/internal/plan/preview"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// expectInPlace is the value of --expect.
const expectInPlace = "in-place"

// liveOptions are the flags of plan that are about a cluster.
type liveOptions struct {
	enabled bool
	refresh bool
	// all plans every Machine of a MachineDeployment.
	all bool
	// expect is empty or expectInPlace.
	expect  string
	updates desired.ModuleUpdates
	// environment is what the manager gives every engine.
	environment map[string]string
	moduleKey   string
	cluster     cli.ClusterFlags
}

func (o *liveOptions) register(command *cobra.Command) {
	flags := command.Flags()
	flags.BoolVar(&o.enabled, "live", false,
		"Show what the manifests would change about Machines in the cluster.")
	flags.BoolVar(&o.refresh, "refresh", false,
		"Also compare instances with the infrastructure, with the credentials in the cluster.")
	flags.BoolVar(&o.all, "all", false,
		"Plan every Machine of a MachineDeployment, not one for each old providerSpec.")
	flags.StringVar(&o.expect, "expect", "",
		"in-place: exit with an error if a Machine would be replaced, would need a new Machine, or is not known.")
	o.updates = desired.ModuleUpdatesHold
	flags.Var(&moduleUpdates{&o.updates}, "module-updates",
		"The manager's --module-updates: Hold or InPlace.")
	flags.StringToStringVar(&o.environment, "engine-env", nil,
		"NAME=VALUE of the manager's --engine-env, such as a proxy, for --refresh; may be repeated.")
	flags.StringVar(&o.moduleKey, "module-key-file", "",
		"The manager's --module-key-file: a file or folder. Only stored modules that it signed are used.")
	o.cluster.Register(command, "")
	o.cluster.RegisterStateKey(command)
	// These fail only for an unknown flag, which the tests would catch.
	_ = command.MarkFlagFilename("module-key-file")
	_ = command.RegisterFlagCompletionFunc("engine-env", cobra.NoFileCompletions)
	_ = command.RegisterFlagCompletionFunc("expect",
		cobra.FixedCompletions([]string{expectInPlace}, cobra.ShellCompDirectiveNoFileComp))
	_ = command.RegisterFlagCompletionFunc("module-updates", cobra.FixedCompletions(
		[]string{string(desired.ModuleUpdatesHold),
			string(desired.ModuleUpdatesInPlace)}, cobra.ShellCompDirectiveNoFileComp))
}

// moduleUpdates is the actuator's flag, with the type that help shows.
type moduleUpdates struct{ *desired.ModuleUpdates }

// Type implements pflag.Value.
func (moduleUpdates) Type() string { return "string" }

func (o *liveOptions) validate(names, files []string) error {
	if err := inspect.ParseNames(names); err != nil {
		return fmt.Errorf("%w, or -f before a file", err)
	}
	switch {
	case len(names) > 0 && len(files) > 0:
		return fmt.Errorf("there are both names (%s) and files; give one of them, and files with --live for an edit",
			strings.Join(names, ", "))
	case o.refresh && !o.enabled && len(names) == 0:
		return errors.New("--refresh is about Machines that exist; add --live, or name a MachineSet")
	case o.moduleKey != "" && !o.enabled && len(names) == 0:
		return errors.New("--module-key-file is about modules that the cluster stores; add --live, or name a MachineSet")
	case len(o.environment) > 0 && !o.refresh:
		return errors.New("--engine-env is for providers that reach the infrastructure; add --refresh, or leave it out")
	}
	return o.validateRollout(names)
}

func (o *liveOptions) validateRollout(names []string) error {
	switch {
	case o.expect != "" && o.expect != expectInPlace:
		return fmt.Errorf("--expect is %q; write %s", o.expect, expectInPlace)
	case (o.expect != "" || o.all) && !o.enabled && len(names) == 0:
		return errors.New("--expect and --all are about Machines that exist; add --live, or name a MachineDeployment")
	}
	return nil
}

// connect returns a client for the cluster, and the default namespace of names and manifests: the
// context's, if it has one and no flag is set.
func (o *liveOptions) connect(namespace string, given bool) (client.Client, string, error) {
	cluster, own, err := o.cluster.Connect()
	if !given && own != metav1.NamespaceDefault {
		namespace = own
	}
	return cluster, namespace, err
}

// manifests returns objects of the cluster that are named, as they are now.
func (o *liveOptions) manifests(ctx context.Context, namespace string, names []string) ([]preview.File, error) {
	if len(names) == 0 {
		return nil, nil
	}
	config, _, err := o.cluster.Configuration()
	if err != nil {
		return nil, err
	}
	cluster, err := inspect.New(config, namespace, state.Options{}) // no state is read
	if err != nil {
		return nil, err
	}
	objects, err := cluster.Get(ctx, names)
	if err != nil {
		return nil, err
	}
	var files []preview.File
	for _, object := range objects {
		object.SetManagedFields(nil)
		content, err := yaml.Marshal(object)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", object.GetName(), err)
		}
		files = append(files, preview.File{Name: "cluster", Content: content})
	}
	return files, nil
}

// plan returns a function that plans requests against a cluster.
func (o *liveOptions) plan(cluster client.Client, catalog *module.Catalog, known preview.Cluster,
	environment *runEnvironment) planning {
	return func(ctx context.Context, requests []*preview.Request, planner preview.Planner,
		engine string) (*preview.Preview, error) {
		states, err := o.cluster.StateOptions()
		if err != nil {
			return nil, err
		}
		var keys *store.Keys
		if o.moduleKey != "" {
			if keys, err = store.ReadKeys(o.moduleKey); err != nil {
				return nil, err
			}
		}
		return live.Plan(ctx, requests, live.Options{
			Client: cluster, Catalog: catalog, ClusterValues: known.ClusterValues, Known: known.Known, ModuleUpdates: o.updates,
			Planner: planner, Engine: engine,
			Refresh: o.refresh, All: o.all, Environment: environment, States: states, ModuleKeys: keys,
		})
	}
}
