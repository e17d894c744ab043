package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/actuators/iac"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/plan/live"
	"github.com/machine-iac/machine-iac-operator/internal/plan/preview"
)

// liveOptions are the flags of plan that are about a cluster.
type liveOptions struct {
	asked   bool
	refresh bool
	updates iac.ModuleUpdates
	// environment is what the manager gives every engine.
	environment map[string]string
	cluster     clusterFlags
}

func (o *liveOptions) register(command *cobra.Command) {
	flags := command.Flags()
	flags.BoolVar(&o.asked, "live", false, "Ask the cluster what the manifests would do to the Machines that exist.")
	flags.BoolVar(&o.refresh, "refresh", false,
		"Have providers compare the instances with their states: with the credentials in the cluster, and with the infrastructure.")
	o.updates = iac.ModuleUpdatesHold
	flags.Var(&moduleUpdates{&o.updates}, "module-updates", "What the manager does about Machines whose module has changed, as its own flag says: Hold or InPlace.")
	flags.StringToStringVar(&o.environment, "engine-env", nil,
		"NAME=VALUE that the manager gives every engine, by its own flag, such as a proxy; may be repeated. For --refresh.")
	o.cluster.register(command, "")
	// Each fails for a flag that is not there only, which the tests would see.
	_ = command.RegisterFlagCompletionFunc("engine-env", cobra.NoFileCompletions)
	_ = command.RegisterFlagCompletionFunc("module-updates", cobra.FixedCompletions(
		[]string{string(iac.ModuleUpdatesHold), string(iac.ModuleUpdatesInPlace)}, cobra.ShellCompDirectiveNoFileComp))
}

// moduleUpdates is the actuator's flag, with the type that help shows.
type moduleUpdates struct{ *iac.ModuleUpdates }

// Type implements pflag.Value.
func (moduleUpdates) Type() string { return "string" }

func (o *liveOptions) validate(names, files []string) error {
	for _, argument := range names {
		if _, _, err := kindAndName(argument); err != nil {
			return err
		}
	}
	switch {
	case len(names) > 0 && len(files) > 0:
		return fmt.Errorf("there are both names (%s) and files; give one of them, and files with --live for an edit", strings.Join(names, ", "))
	case o.refresh && !o.asked && len(names) == 0:
		return errors.New("--refresh is about Machines that exist; add --live, or name a MachineSet")
	case len(o.environment) > 0 && !o.refresh:
		return errors.New("--engine-env is for providers that reach the infrastructure; add --refresh, or leave it out")
	}
	return nil
}

// connect answers a client for the cluster, and the namespace of what does not say: the context's where it has one and none was given.
func (o *liveOptions) connect(namespace string, given bool) (client.Client, string, error) {
	cluster, own, err := o.cluster.connect()
	if !given && own != metav1.NamespaceDefault {
		namespace = own
	}
	return cluster, namespace, err
}

// manifests answers objects of the cluster that are named, as they are now.
func (o *liveOptions) manifests(ctx context.Context, cluster client.Client, namespace string, names []string) ([]preview.File, error) {
	var files []preview.File
	for _, argument := range names {
		kind, name, err := kindAndName(argument)
		if err != nil {
			return nil, err
		}
		object, err := live.Get(ctx, cluster, kind, namespace, name)
		if err != nil {
			return nil, err
		}
		object.SetManagedFields(nil)
		object.GetObjectKind().SetGroupVersionKind(machinev1beta1.GroupVersion.WithKind(kind))
		content, err := yaml.Marshal(object)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", argument, err)
		}
		files = append(files, preview.File{Name: "cluster", Content: content})
	}
	return files, nil
}

// kinds are the names of what can be planned.
var kinds = map[string]string{
	"machineset": "MachineSet", "machinesets": "MachineSet", "machine": "Machine", "machines": "Machine",
}

// kindAndName reads TYPE/NAME, as kubectl has it, or the name of a MachineSet.
func kindAndName(argument string) (kind, name string, err error) {
	prefix, name, both := strings.Cut(argument, "/")
	if !both {
		return "MachineSet", argument, nil
	}
	kind, known := kinds[strings.TrimSuffix(strings.ToLower(prefix), "."+machinev1beta1.GroupName)]
	if !known || name == "" {
		return "", "", fmt.Errorf("%q names neither a MachineSet nor a Machine; write machineset/NAME or machine/NAME, or -f before a file", argument)
	}
	return kind, name, nil
}

// plan answers how requests are planned against a cluster.
func (o *liveOptions) plan(cluster client.Client, catalog *module.Catalog, facts module.Facts, around *surroundings) planning {
	return func(ctx context.Context, requests []*preview.Request, planner preview.Planner, engine string) (*preview.Preview, error) {
		return live.Plan(ctx, requests, live.Options{
			Client: cluster, Catalog: catalog, Facts: facts, ModuleUpdates: o.updates, Planner: planner, Engine: engine, Refresh: o.refresh, Surroundings: around,
		})
	}
}
