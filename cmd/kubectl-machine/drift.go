package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/machine-iac/machine-iac-operator/cmd/kubectl-machine/cli"
	"github.com/machine-iac/machine-iac-operator/internal/inspect"
)

func newDrift() *cobra.Command {
	var i cli.Inspection
	var drifted bool
	var request driftRequest
	command := &cobra.Command{
		Use:   "drift [MACHINE...]",
		Short: "Show how instances differ from what was applied",
		Long: `Show what the last drift check of each Machine found: whether its instance is as applied, what differs, and what is done about it. The
operator checks every --drift-interval; --now has it check at once, by the annotation machine-iac.io/check-drift, and waits for the result.`,
		Example: `  # All Machines of the namespace
  kubectl machine drift -n openshift-machine-api

  # Only those that have drifted, with messages in full
  kubectl machine drift --drifted -o wide

  # Check one Machine now
  kubectl machine drift workers-x7k2p --now`,
		ValidArgsFunction: i.Complete(cli.NamesOf("Machine")),
		RunE: func(command *cobra.Command, names []string) error {
			if err := request.validate(command, &i, names); err != nil {
				return err
			}
			facts, err := i.Read(command, names, inspect.Want{})
			if err != nil {
				return err
			}
			var late []string
			if request.now {
				live, _, err := i.Connect()
				if err != nil {
					return err
				}
				if late, err = request.check(command.Context(), live, facts.Machines); err != nil {
					return err
				}
				facts.Now = time.Now()
			}
			list := inspect.Drift(facts, drifted)
			switch {
			case len(list.Items) == 0 && drifted && len(facts.Machines) > 0:
				i.Nothing(command, "No check has found drift", facts.Namespace)
			case len(list.Items) == 0:
				i.Nothing(command, "There are no Machines", facts.Namespace)
			}
			return errors.Join(i.Printer.Print(command.OutOrStdout(), list), request.tooLate(late))
		},
	}
	i.Register(command)
	i.RegisterSelection(command)
	i.RegisterOutput(command)
	command.Flags().BoolVar(&drifted, "drifted", false, "Only Machines whose instance has changed or is gone.")
	request.register(command)
	return command
}
