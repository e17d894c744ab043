// Package rollout is `kubectl machine rollout`: the verbs of `kubectl rollout`, for MachineDeployments.
// Flags, output and exit codes are those that kubectl has for Deployments.
package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/cmd/kubectl-machine/cli"
	"github.com/machine-iac/machine-iac-operator/internal/inspect"
)

// resource and setResource name MachineDeployments and MachineSets in errors, as the API server does.
const (
	resource    = "machinedeployments.machine.openshift.io"
	setResource = "machinesets.machine.openshift.io"
)

// NewCommand returns the group of commands.
func NewCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "rollout",
		Short: "Watch, pause, undo and restart rollouts",
		Long: `Watch, pause, undo and restart rollouts of MachineDeployments. Verbs, flags, output and exit codes are those of
"kubectl rollout", which does not know this kind. A MachineSet without a MachineDeployment takes status, restart and
update.`,
		Example: `  # Wait until a change has reached all Machines
  kubectl machine rollout status machinedeployment/workers

  # Go back to the revision before
  kubectl machine rollout undo machinedeployment/workers`,
		Args: cobra.ArbitraryArgs,
		RunE: func(command *cobra.Command, arguments []string) error {
			if len(arguments) > 0 {
				return fmt.Errorf("unknown command %q for %q; '%s --help' lists them", arguments[0], command.CommandPath(),
					command.CommandPath())
			}
			return command.Help()
		},
	}
	command.AddCommand(newHistory(), newPause(), newRestart(), newResume(), newStatus(), newUndo(), newUpdate())
	return command
}

// targets are the flags and arguments that name MachineDeployments, and MachineSets if the verb takes them.
type targets struct {
	cli.ClusterFlags
	labels string
	files  genericclioptions.FileNameFlags
}

func (t *targets) register(command *cobra.Command) {
	t.Register(command, "Namespace of the objects. Default: the context's.")
	t.files = genericclioptions.FileNameFlags{
		Usage:     "Files that name the objects.",
		Filenames: &[]string{}, Kustomize: ptr.To(""), Recursive: ptr.To(false),
	}
	flags := command.Flags()
	t.files.AddFlags(flags)
	flags.Lookup("recursive").Usage = "Read nested folders too."
	flags.Lookup("kustomize").Usage = "Folder with a kustomization. Not together with -f or -R."
	flags.StringVarP(&t.labels, "selector", "l", "", "Label selector, such as -l key1=value1,key2!=value2.")
	_ = command.RegisterFlagCompletionFunc("selector", cobra.NoFileCompletions)
	_ = command.MarkFlagDirname("kustomize")
	command.ValidArgsFunction = t.Complete(namesOf(v1beta1.MachineDeploymentKind))
}

// namesOf completes objects of a kind as TYPE/NAME.
func namesOf(kind string) func(context.Context, *inspect.Cluster) ([]string, error) {
	return func(ctx context.Context, cluster *inspect.Cluster) ([]string, error) {
		found, err := cluster.Names(ctx, kind)
		for n := range found {
			found[n] = strings.ToLower(kind) + "/" + found[n]
		}
		return found, err
	}
}

// find returns what is named, and a client. It reports to the error output that nothing is. MachineSets are rejected
// unless the verb takes them.
func (t *targets) find(command *cobra.Command, arguments []string, sets bool) (client.Client, []client.Object, error) {
	files := t.files.ToOptions()
	if len(arguments) == 0 && len(files.Filenames) == 0 && files.Kustomize == "" {
		return nil, nil, errors.New("required resource not specified; name it as TYPE/NAME, such as machinedeployment/NAME")
	}
	cluster, err := t.Cluster()
	if err != nil {
		return nil, nil, err
	}
	found, err := cluster.RolledOut(command.Context(), inspect.Arguments{
		Names: arguments, Labels: t.labels, Files: files, EnforceNamespace: command.Flags().Changed("namespace"),
	})
	if err != nil {
		return nil, nil, err
	}
	for _, one := range found {
		if _, is := one.(*machinev1beta1.MachineSet); is && !sets {
			return nil, nil, fmt.Errorf("%s %q has no '%s'; name a MachineDeployment, as machinedeployment/NAME", setResource,
				one.GetName(), command.CommandPath())
		}
	}
	if len(found) == 0 {
		fmt.Fprintf(command.ErrOrStderr(), "No resources found in %s namespace.\n", cluster.Namespace())
	}
	live, _, err := t.Connect()
	return live, found, err
}

// deployments are what find returned for a verb that takes no MachineSets.
func deployments(found []client.Object) []*v1beta1.MachineDeployment {
	var out []*v1beta1.MachineDeployment
	for _, one := range found {
		if d, ok := one.(*v1beta1.MachineDeployment); ok {
			out = append(out, d)
		}
	}
	return out
}

// printing prints changed objects as kubectl does.
type printing struct{ flags *genericclioptions.PrintFlags }

func (p *printing) register(command *cobra.Command) {
	p.flags = genericclioptions.NewPrintFlags("")
	p.flags.AddFlags(command)
	_ = command.RegisterFlagCompletionFunc("output",
		cobra.FixedCompletions(p.flags.AllowedFormats(), cobra.ShellCompDirectiveNoFileComp))
}

// print prints an object, after its name what was done.
func (p *printing) print(command *cobra.Command, object client.Object, done string) error {
	kind := v1beta1.GroupVersion.WithKind(v1beta1.MachineDeploymentKind)
	if _, ok := object.(*machinev1beta1.MachineSet); ok {
		kind.Kind = "MachineSet"
	}
	object.GetObjectKind().SetGroupVersionKind(kind)
	p.flags.NamePrintFlags.Operation = done
	printer, err := p.flags.ToPrinter()
	if err != nil {
		return err
	}
	return printer.PrintObj(object, command.OutOrStdout())
}

// revisions returns the MachineSets of a MachineDeployment, by revision.
func revisions(ctx context.Context, live client.Client,
	d *v1beta1.MachineDeployment) (map[int64]*machinev1beta1.MachineSet, error) {
	list := &machinev1beta1.MachineSetList{}
	if err := live.List(ctx, list, client.InNamespace(d.Namespace)); err != nil {
		return nil, err
	}
	sets := map[int64]*machinev1beta1.MachineSet{}
	for i := range list.Items {
		set := &list.Items[i]
		if !metav1.IsControlledBy(set, d) {
			continue
		}
		if number := v1beta1.Revision(set); number > 0 {
			sets[number] = set
		}
	}
	return sets, nil
}

// joined returns errors as one, a line each, without duplicates.
func joined(failed []error) error {
	var lines []string
	for _, err := range failed {
		if !slices.Contains(lines, err.Error()) {
			lines = append(lines, err.Error())
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return errors.New(strings.Join(lines, "\nerror: "))
}
