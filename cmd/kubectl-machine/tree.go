package main

import (
	"github.com/spf13/cobra"

	"github.com/machine-iac/machine-iac-operator/internal/inspect"
)

func newTree() *cobra.Command {
	var i inspection
	command := &cobra.Command{
		Use:   "tree [MACHINESET|MACHINE...]",
		Short: "Show MachineSets with their Machines, instances and Nodes",
		Long: `Show MachineSets with their Machines, the Machines' instances, and their Nodes: phase, age, and the conditions that are not as they
should be. Machines without a MachineSet come last.`,
		Example: `  # Everything in the namespace
  kubectl machine tree -n openshift-machine-api

  # One MachineSet, with messages in full
  kubectl machine tree machineset/workers -o wide`,
		ValidArgsFunction: i.complete(namesOf("MachineSet", "Machine")),
		RunE: func(command *cobra.Command, names []string) error {
			facts, err := i.read(command, names, inspect.Want{Sets: true, Nodes: true})
			if err != nil {
				return err
			}
			forest := inspect.Tree(facts)
			if len(forest.Items) == 0 {
				i.nothing(command, "There are no MachineSets and no Machines", facts.Namespace)
			}
			return i.printer.Print(command.OutOrStdout(), forest)
		},
	}
	i.register(command)
	i.registerSelection(command)
	i.registerOutput(command)
	return command
}
