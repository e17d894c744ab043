package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/machine-iac/machine-iac-operator/cmd/kubectl-machine/cli"
)

func newLogs() *cobra.Command {
	var i cli.Inspection
	command := &cobra.Command{
		Use:   "logs MACHINE",
		Short: "Print the engine's output of the last run for a Machine",
		Long: `Print the engine's output of the last run for a Machine, or the end of it, without sensitive values. A Machine that is gone is named by its
last name or its UID. Which run it was, and how it ended, is written to the error output.`,
		Example: `  # Why a Machine is not created
  kubectl machine logs workers-x7k2p -n openshift-machine-api`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: i.CompleteOne(cli.NamesOf("Machine")),
		RunE: func(command *cobra.Command, names []string) error {
			cluster, err := i.Open()
			if err != nil {
				return err
			}
			output, err := cluster.EngineOutput(command.Context(), names[0])
			if err != nil {
				return err
			}
			for _, note := range output.Notes(time.Now()) {
				fmt.Fprintln(command.ErrOrStderr(), "note:", note)
			}
			_, err = fmt.Fprint(command.OutOrStdout(), output.Text)
			return err
		},
	}
	i.Register(command)
	return command
}
