package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/machine-iac/machine-iac-operator/internal/inspect"
	"github.com/machine-iac/machine-iac-operator/internal/inspect/print"
)

// inspection is what the commands have in common that show what a cluster has.
type inspection struct {
	clusterFlags
	printer *print.Printer
	labels  string
}

// register adds the flags of a command about Machines.
func (i *inspection) register(command *cobra.Command) {
	i.clusterFlags.register(command, "Namespace of the Machines. Default: the context's.")
}

// registerSelection adds -A and -l.
func (i *inspection) registerSelection(command *cobra.Command) {
	i.registerAllNamespaces(command)
	command.Flags().StringVarP(&i.labels, "selector", "l", "", "Label selector that the objects match, such as -l key1=value1,key2!=value2. Not together with names.")
	_ = command.RegisterFlagCompletionFunc("selector", cobra.NoFileCompletions)
}

// registerOutput adds -o and what belongs to it.
func (i *inspection) registerOutput(command *cobra.Command) {
	i.printer = print.New()
	i.printer.AddFlags(command)
	_ = command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(i.printer.Formats(), cobra.ShellCompDirectiveNoFileComp))
}

// open returns the cluster.
func (i *inspection) open() (*inspect.Cluster, error) {
	if err := i.validateOutput(); err != nil {
		return nil, err
	}
	return i.cluster()
}

// validateOutput checks the flags of the output before anything is read.
func (i *inspection) validateOutput() error {
	if i.printer == nil {
		return nil
	}
	return i.printer.Validate()
}

// read reads what is wanted of the Machines that are selected, and says on the error output what could not be read.
func (i *inspection) read(command *cobra.Command, names []string, want inspect.Want) (*inspect.Facts, error) {
	cluster, err := i.open()
	if err != nil {
		return nil, err
	}
	want.Selection = inspect.Selection{Names: names, Labels: i.labels}
	facts, err := cluster.Read(command.Context(), want, time.Now())
	if err != nil {
		return nil, err
	}
	for _, note := range facts.Notes {
		fmt.Fprintln(command.ErrOrStderr(), "note:", note)
	}
	return facts, nil
}

// nothing says on the error output that there is nothing to print.
func (i *inspection) nothing(command *cobra.Command, what, namespace string) {
	where := "in namespace " + namespace
	if namespace == "" {
		where = "in any namespace"
	}
	hint := ""
	switch {
	case i.labels != "":
		where = fmt.Sprintf("with labels %q %s", i.labels, where)
	case namespace != "" && !strings.HasPrefix(namespace, "openshift-"):
		hint = "; -n names another one, such as openshift-machine-api"
	}
	fmt.Fprintf(command.ErrOrStderr(), "%s %s%s\n", what, where, hint)
}

// namesOf reads the names of all objects of kinds.
func namesOf(kinds ...string) names {
	return func(ctx context.Context, cluster *inspect.Cluster) ([]string, error) {
		return cluster.Names(ctx, kinds...)
	}
}
