// Package ownership has the commands about ownership: orphans shows what belongs to no Machine and
// has it destroyed, and adopt takes over what the operator did not create.
package ownership

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/machine-iac/machine-iac-operator/cmd/kubectl-machine/cli"
	"github.com/machine-iac/machine-iac-operator/internal/inspect"
	"github.com/machine-iac/machine-iac-operator/internal/inspect/print"
)

// orphanOptions are the flags of orphans.
type orphanOptions struct {
	cli.BackupFlags
	destroy    string
	adoptAs    string
	machineSet string
	yes        bool
	wait       time.Duration
}

// NewOrphans returns the command.
func NewOrphans() *cobra.Command {
	var o orphanOptions
	command := &cobra.Command{
		Use:   "orphans [NAME...]",
		Short: "Show states and instances without a Machine, and have one destroyed or adopted",
		Long: `Show states whose Machine is gone, and states that could not be saved and list what no other state has: since when, and which resources they
list. A destroy would remove these; without the state, nothing would know of them. Also shown are instances of the cluster without a Machine and a
state, as the last inventory has found them. NAME is the name or the UID of the Machine that is gone, the Secret, or the instance.

With --destroy, the operator is asked to destroy what one state lists, as if its Machine were deleted. It decides again itself, does it at its next
look at the states, every two minutes (at thousands less often), and repeats what fails. An instance without a state is adopted first, as a Machine that is made for that and then
deleted, so that all is found that belongs to it, and that its Node is drained.

With --adopt-as, a state is given to the Machine of its name, and an instance is adopted by a new Machine. A Machine that is not there is made: like
those of the MachineSet that the state names or that --machine-set names, and for an instance otherwise like the Machine that it was listed with,
without labels of a MachineSet. For both, and for an instance with --destroy, you need the right to "adopt" machines.machine.openshift.io.`,
		Example: `  # List states and instances without a Machine
  kubectl machine orphans -n openshift-machine-api

  # All that is known of one
  kubectl machine orphans workers-x7k2p -o yaml

  # Have it destroyed, with all that its state lists
  kubectl machine orphans --destroy workers-x7k2p

  # Give it its Machine back
  kubectl machine orphans workers-x7k2p --adopt-as workers-x7k2p`,
		ValidArgsFunction: o.Complete(orphanNames),
		RunE: func(command *cobra.Command, names []string) error {
			switch {
			case o.adoptAs != "":
				return o.runAdopt(command, names)
			case o.destroy != "":
				return o.runDestroy(command, names)
			}
			return o.list(command, names)
		},
	}
	o.Register(command)
	o.RegisterAllNamespaces(command)
	o.RegisterOutput(command)
	flags := command.Flags()
	o.RegisterManager(command)
	flags.StringVar(&o.destroy, "destroy", "",
		"Destroy what the state of NAME lists, or the instance NAME, after a confirmation.")
	flags.StringVar(&o.adoptAs, "adopt-as", "",
		"Give the orphan to the Machine of this name, created if missing.")
	flags.StringVar(&o.machineSet, "machine-set", "",
		"MachineSet to create the Machine from, with --adopt-as or --destroy of an instance.")
	flags.BoolVar(&o.yes, "yes", false, "Skip the confirmation.")
	flags.DurationVar(&o.wait, "wait", defaultOrphanWait,
		"How long to wait, with --destroy or --adopt-as. 0 only requests it.")
	command.MarkFlagsMutuallyExclusive("destroy", "adopt-as", "all-namespaces")
	command.MarkFlagsMutuallyExclusive("destroy", "adopt-as", "output")
	_ = command.RegisterFlagCompletionFunc("adopt-as", cobra.NoFileCompletions)
	_ = command.RegisterFlagCompletionFunc("machine-set", o.Complete(cli.NamesOf("MachineSet")))
	_ = command.RegisterFlagCompletionFunc("destroy", o.Complete(orphanNames))
	_ = command.RegisterFlagCompletionFunc("wait", cobra.NoFileCompletions)
	return command
}

func orphanNames(ctx context.Context, cluster *inspect.Cluster) ([]string, error) {
	list, err := inspect.Orphans(ctx, cluster, nil, time.Now())
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name())
	}
	return names, nil
}

func (o *orphanOptions) list(command *cobra.Command, names []string) error {
	if o.yes || command.Flags().Changed("wait") || o.machineSet != "" {
		return errors.New("--yes, --wait and --machine-set belong to --destroy NAME and --adopt-as NAME; without one, nothing is done")
	}
	if o.AllNamespaces && len(names) > 0 {
		return errors.New("a resource cannot be retrieved by name across all namespaces")
	}
	cluster, err := o.Open()
	if err != nil {
		return err
	}
	list, err := inspect.Orphans(command.Context(), cluster, names, time.Now())
	if err != nil {
		return err
	}
	for _, note := range list.Notes {
		fmt.Fprintln(command.ErrOrStderr(), "note:", note)
	}
	if len(list.Items) == 0 {
		o.Nothing(command, "There are no orphans", o.namespaceOrAll())
	}
	return o.Printer.Print(command.OutOrStdout(), list)
}

// namespaceOrAll returns the namespace to read, or "" for all.
func (o *orphanOptions) namespaceOrAll() string {
	if _, namespace, err := o.Configuration(); err == nil {
		return namespace
	}
	return *o.Namespace
}

// runDestroy requests the destroy of one state whose Machine is gone, and waits for it.
func (o *orphanOptions) runDestroy(command *cobra.Command, names []string) error {
	if len(names) > 0 {
		return fmt.Errorf("--destroy %s takes one name, and %q is another; destroy them one by one", o.destroy, names[0])
	}
	cluster, err := o.Cluster()
	if err != nil {
		return err
	}
	found, err := oneOrphan(command.Context(), cluster, o.destroy)
	if err == nil {
		err = destroyable(found)
	}
	if err != nil {
		return err
	}
	if found.Kind == inspect.OrphanInstance {
		live, _, err := o.Connect()
		if err != nil {
			return err
		}
		a := orphanAdoption{options: o, live: live, orphan: found}
		return a.destroyInstance(command)
	}
	describeOrphan(command, found)
	if !o.yes && !confirmed(command, "Destroy this? Only 'yes' is taken for it: ") {
		return errors.New("it was not confirmed; nothing was changed")
	}
	live, _, err := o.Connect()
	if err != nil {
		return err
	}
	r := orphanRequest{live: live, cluster: cluster, orphan: found}
	if err := r.destroy(command.Context()); err != nil {
		return err
	}
	if o.wait <= 0 {
		fmt.Fprintf(command.OutOrStdout(), "the destroy of %s is requested\n", found.Name())
		return nil
	}
	fmt.Fprintln(command.ErrOrStderr(),
		"note: the destroy is requested; the operator looks at the states every two minutes, at thousands less often")
	if err := r.waitUntilGone(command, o.wait); err != nil {
		return err
	}
	fmt.Fprintf(command.OutOrStdout(), "%s is destroyed, and its state is removed\n", found.Name())
	return nil
}

// oneOrphan finds the orphan of a name.
func oneOrphan(ctx context.Context, cluster *inspect.Cluster, name string) (*inspect.Orphan, error) {
	list, err := inspect.Orphans(ctx, cluster, []string{name}, time.Now())
	if err != nil {
		return nil, err
	}
	if len(list.Items) == 1 {
		return &list.Items[0], nil
	}
	var secrets []string
	for i := range list.Items {
		secrets = append(secrets, list.Items[i].Secret)
	}
	return nil, fmt.Errorf("%d orphans are called %q; name one by its Secret: %s", len(list.Items),
		name, strings.Join(secrets, ", "))
}

// destroyable returns why a destroy cannot be requested.
func destroyable(o *inspect.Orphan) error {
	switch {
	case o.Kind == inspect.OrphanUnsaved:
		return fmt.Errorf("%s is a state that could not be saved, and runs do not use it; look up each of its resources by its ID, remove those of no Machine, then remove the Secret: "+
			"see docs/troubleshooting.md", o.Secret)
	case o.Claimed != "":
		return fmt.Errorf("%s is not destroyed: %s", o.Name(), o.Claimed)
	case o.Lock != nil:
		return fmt.Errorf("a run has the state of %s: %s; try again when it has ended", o.Name(), o.Lock)
	}
	return nil
}

// describeOrphan shows what a destroy would remove.
func describeOrphan(command *cobra.Command, o *inspect.Orphan) {
	since := ""
	if o.Since != nil {
		since = " since " + o.Since.UTC().Format(time.RFC3339)
	}
	out := command.ErrOrStderr()
	fmt.Fprintf(out, "The Machine %s (%s) is gone%s. Its state %s/%s lists %d resources:\n",
		print.OneLine(o.Name()), print.OneLine(string(o.UID)), since, o.Namespace, o.Secret, len(o.Resources))
	for _, resource := range o.Resources {
		fmt.Fprintln(out, "  "+print.OneLine(resource.String()))
	}
}

// confirmed asks a question and reports whether the answer is yes.
func confirmed(command *cobra.Command, question string) bool {
	fmt.Fprint(command.ErrOrStderr(), question)
	reply, _ := bufio.NewReader(command.InOrStdin()).ReadString('\n') // no answer means no
	return strings.TrimSpace(reply) == "yes"
}
