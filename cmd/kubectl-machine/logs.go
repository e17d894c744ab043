package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/machine-iac/machine-iac-operator/cmd/kubectl-machine/cli"
)

func newLogs() *cobra.Command {
	var i cli.Inspection
	var withheld bool
	command := &cobra.Command{
		Use:   "logs MACHINE",
		Short: "Print the engine's output of the last run for a Machine",
		Long: `Print the engine's output of the last run for a Machine, or the end of it, without sensitive values. A Machine that is gone is named by its
last name or its UID. Which run it was, and how it ended, is written to the error output.

A message that repeats what it was given, or is about a sensitive input, is withheld. --withheld prints such messages alone, in which only the
strings that are known to be secret are replaced: do not paste them where others read.`,
		Example: `  # Why a Machine is not created
  kubectl machine logs workers-x7k2p -n openshift-machine-api

  # What is withheld of it
  kubectl machine logs workers-x7k2p -n openshift-machine-api --withheld`,
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
			if withheld {
				return printWithheld(command, output.Withheld)
			}
			for _, note := range output.Notes(time.Now()) {
				fmt.Fprintln(command.ErrOrStderr(), "note:", note)
			}
			_, err = fmt.Fprint(command.OutOrStdout(), output.Text)
			return err
		},
	}
	i.Register(command)
	i.RegisterStateKey(command)
	command.Flags().BoolVar(&withheld, "withheld", false, "Print only the withheld output.")
	return command
}

func printWithheld(command *cobra.Command, text string) error {
	if text == "" {
		fmt.Fprintln(command.ErrOrStderr(),
			"note: nothing of the output of the last run is withheld, or there was no room for it")
	}
	_, err := fmt.Fprint(command.OutOrStdout(), text)
	return err
}
