package main

import (
	"github.com/spf13/cobra"

	"github.com/machine-iac/machine-iac-operator/cmd/kubectl-machine/cli"
	"github.com/machine-iac/machine-iac-operator/internal/inspect"
)

func newRuns() *cobra.Command {
	var i cli.Inspection
	var active bool
	command := &cobra.Command{
		Use:   "runs [MACHINE...]",
		Short: "Show what is queued or running, and how the last run of each Machine ended",
		Long: `Show what is queued or running, since when, and how the last run of each Machine ended: create, update, drift (a check) or destroy. A
run that is Unsettled was interrupted; the next one finds out what it did.`,
		Example: `  # All Machines of the namespace
  kubectl machine runs -n openshift-machine-api

  # Those of one MachineSet, as columns of your own
  kubectl machine runs machineset/workers -o custom-columns=MACHINE:.machine,RESULT:.last.result

  # Only what is queued or running, every two seconds
  watch kubectl machine runs --active`,
		ValidArgsFunction: i.Complete(cli.NamesOf("Machine")),
		RunE: func(command *cobra.Command, names []string) error {
			facts, err := i.Read(command, names, inspect.Want{StatesIfAllowed: true})
			if err != nil {
				return err
			}
			list := inspect.Runs(facts, active)
			switch {
			case len(list.Items) == 0 && active && len(facts.Machines) > 0:
				i.Nothing(command, "Nothing is queued or running", facts.Namespace)
			case len(list.Items) == 0:
				i.Nothing(command, "There are no Machines", facts.Namespace)
			}
			return i.Printer.Print(command.OutOrStdout(), list)
		},
	}
	i.Register(command)
	i.RegisterSelection(command)
	i.RegisterOutput(command)
	command.Flags().BoolVar(&active, "active", false, "Only queued, running and unsettled runs.")
	return command
}
