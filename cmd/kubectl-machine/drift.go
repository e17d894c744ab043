package main

import (
	"github.com/spf13/cobra"

	"github.com/machine-iac/machine-iac-operator/cmd/kubectl-machine/cli"
	"github.com/machine-iac/machine-iac-operator/internal/inspect"
)

func newDrift() *cobra.Command {
	var i cli.Inspection
	var drifted bool
	command := &cobra.Command{
		Use:   "drift [MACHINE...]",
		Short: "Show how instances differ from what was applied",
		Long: `Show what the last drift check of each Machine found: whether its instance is as applied, what differs, and what is done about it. It
checks nothing itself; the operator does, every --drift-interval.`,
		Example: `  # All Machines of the namespace
  kubectl machine drift -n openshift-machine-api

  # Only those that have drifted, with messages in full
  kubectl machine drift --drifted -o wide`,
		ValidArgsFunction: i.Complete(cli.NamesOf("Machine")),
		RunE: func(command *cobra.Command, names []string) error {
			facts, err := i.Read(command, names, inspect.Want{})
			if err != nil {
				return err
			}
			list := inspect.Drift(facts, drifted)
			switch {
			case len(list.Items) == 0 && drifted && len(facts.Machines) > 0:
				i.Nothing(command, "No check has found drift", facts.Namespace)
			case len(list.Items) == 0:
				i.Nothing(command, "There are no Machines", facts.Namespace)
			}
			return i.Printer.Print(command.OutOrStdout(), list)
		},
	}
	i.Register(command)
	i.RegisterSelection(command)
	i.RegisterOutput(command)
	command.Flags().BoolVar(&drifted, "drifted", false, "Only Machines whose instance has changed or is gone.")
	return command
}
