package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/machine-iac/machine-iac-operator/internal/inspect"
	"github.com/machine-iac/machine-iac-operator/internal/inspect/print"
)

// Inspection is shared by the commands that show the content of a cluster.
type Inspection struct {
	ClusterFlags
	// Printer prints the output of a command that has -o.
	Printer *print.Printer
	// Labels is a label selector.
	Labels string
}

// Register adds the flags of a command about Machines.
func (i *Inspection) Register(command *cobra.Command) {
	i.ClusterFlags.Register(command, "Namespace of the Machines. Default: the context's.")
}

// RegisterSelection adds -A and -l.
func (i *Inspection) RegisterSelection(command *cobra.Command) {
	i.RegisterAllNamespaces(command)
	command.Flags().StringVarP(&i.Labels, "selector", "l", "",
		"Label selector, such as -l key1=value1,key2!=value2. Not together with names.")
	_ = command.RegisterFlagCompletionFunc("selector", cobra.NoFileCompletions)
}

// RegisterOutput adds -o and related flags.
func (i *Inspection) RegisterOutput(command *cobra.Command) {
	i.Printer = print.New()
	i.Printer.AddFlags(command)
	_ = command.RegisterFlagCompletionFunc("output",
		cobra.FixedCompletions(i.Printer.Formats(), cobra.ShellCompDirectiveNoFileComp))
}

// Open returns the cluster.
func (i *Inspection) Open() (*inspect.Cluster, error) {
	if err := i.ValidateOutput(); err != nil {
		return nil, err
	}
	return i.Cluster()
}

// ValidateOutput checks the flags of the output before anything is read.
func (i *Inspection) ValidateOutput() error {
	if i.Printer == nil {
		return nil
	}
	return i.Printer.Validate()
}

// Read reads the selected Machines, and writes what is unreadable to the error output.
func (i *Inspection) Read(command *cobra.Command, names []string, want inspect.Want) (*inspect.Facts, error) {
	cluster, err := i.Open()
	if err != nil {
		return nil, err
	}
	want.Selection = inspect.Selection{Names: names, Labels: i.Labels}
	facts, err := cluster.Read(command.Context(), want, time.Now())
	if err != nil {
		return nil, err
	}
	for _, note := range facts.Notes {
		fmt.Fprintln(command.ErrOrStderr(), "note:", note)
	}
	return facts, nil
}

// Nothing writes to the error output that there is nothing to print.
func (i *Inspection) Nothing(command *cobra.Command, what, namespace string) {
	where := "in namespace " + namespace
	if namespace == "" {
		where = "in any namespace"
	}
	hint := ""
	switch {
	case i.Labels != "":
		where = fmt.Sprintf("with labels %q %s", i.Labels, where)
	case namespace != "" && !strings.HasPrefix(namespace, "openshift-"):
		hint = "; -n names another one, such as openshift-machine-api"
	}
	fmt.Fprintf(command.ErrOrStderr(), "%s %s%s\n", what, where, hint)
}

// NamesOf reads the names of all objects of some kinds.
func NamesOf(kinds ...string) Names {
	return func(ctx context.Context, cluster *inspect.Cluster) ([]string, error) {
		return cluster.Names(ctx, kinds...)
	}
}
