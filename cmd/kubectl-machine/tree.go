package main

import (
	"github.com/spf13/cobra"

	"github.com/machine-iac/machine-iac-operator/cmd/kubectl-machine/cli"
	"github.com/machine-iac/machine-iac-operator/internal/inspect"
)

func newTree() *cobra.Command {
	var i cli.Inspection
	command := &cobra.Command{
		Use:   "tree [MACHINEDEPLOYMENT|MACHINESET|MACHINE...]",
		Short: "Show MachineDeployments and MachineSets with their Machines, instances and Nodes",
		Long: `Show MachineDeployments with their MachineSets, their Machines, the Machines' instances, and their Nodes: phase, age, and the conditions
that are not as they should be. Machines without a MachineSet come last.`,
		Example: `  # Everything in the namespace
  kubectl machine tree -n openshift-machine-api

  # One MachineSet, with messages in full
  kubectl machine tree machineset/workers -o wide`,
		ValidArgsFunction: i.Complete(cli.NamesOf("MachineSet", "Machine")),
		RunE: func(command *cobra.Command, names []string) error {
			facts, err := i.Read(command, names, inspect.Want{Sets: true, Nodes: true})
			if err != nil {
				return err
			}
			forest := inspect.Tree(facts)
			if len(forest.Items) == 0 {
				i.Nothing(command, "There are no MachineSets and no Machines", facts.Namespace)
			}
			return i.Printer.Print(command.OutOrStdout(), forest)
		},
	}
	i.Register(command)
	i.RegisterSelection(command)
	i.RegisterOutput(command)
	return command
}
