package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/inspect"
)

// inspection is what commands have in common that show what a cluster knows.
type inspection struct {
	clusterFlags
	output string
}

// register adds the flags to a command that asks about Machines.
func (i *inspection) register(command *cobra.Command) {
	i.clusterFlags.register(command, "Namespace of the Machines. Default: the context's.")
}

// registerOutput adds -o to a command that prints a table.
func (i *inspection) registerOutput(command *cobra.Command) {
	command.Flags().StringVarP(&i.output, "output", "o", "", "Format of the output: table, wide, json or yaml; a table when left out.")
	var formats []string
	for format, use := range inspect.Formats {
		if format != "" {
			formats = append(formats, format+"\t"+use)
		}
	}
	slices.Sort(formats)
	_ = command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
}

// ask has a cluster asked, for as long as it may take.
func (i *inspection) ask(command *cobra.Command, question func(context.Context, *inspect.Cluster) error) error {
	if err := inspect.KnownFormat(i.output); err != nil {
		return err
	}
	live, namespace, err := i.connect()
	if err != nil {
		return err
	}
	return question(command.Context(), inspect.New(live, namespace))
}

// read answers what the cluster has, and says on the error output what could not be read.
func (i *inspection) read(command *cobra.Command, want inspect.Want) (facts *inspect.Facts, err error) {
	err = i.ask(command, func(ctx context.Context, cluster *inspect.Cluster) error {
		facts, err = cluster.Read(ctx, want, time.Now())
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, note := range facts.Notes {
		fmt.Fprintln(command.ErrOrStderr(), "note:", note)
	}
	return facts, nil
}

// print prints so many things; a table of none is left out.
func (i *inspection) print(command *cobra.Command, value any, count int) error {
	if count == 0 && inspect.IsTable(i.output) {
		return nil
	}
	return inspect.Print(command.OutOrStdout(), i.output, value)
}

// nothing says on the error output that there is nothing to print.
func (i *inspection) nothing(command *cobra.Command, what, namespace string) {
	where := "in namespace " + namespace
	if namespace == "" {
		where = "in any namespace"
	}
	mend := ""
	if namespace != "" && !strings.HasPrefix(namespace, "openshift-") {
		mend = "; -n names another one, such as openshift-machine-api"
	}
	fmt.Fprintf(command.ErrOrStderr(), "%s %s%s\n", what, where, mend)
}

func machineNames(ctx context.Context, live client.Client, namespace string) ([]string, error) {
	return inspect.New(live, namespace).MachineNames(ctx)
}

func setNames(ctx context.Context, live client.Client, namespace string) ([]string, error) {
	return inspect.New(live, namespace).SetNames(ctx)
}

func setAndMachineNames(ctx context.Context, live client.Client, namespace string) ([]string, error) {
	sets, err := setNames(ctx, live, namespace)
	if err != nil {
		return nil, err
	}
	machines, err := machineNames(ctx, live, namespace)
	return slices.Concat(sets, machines), err
}
