// Package state is `kubectl machine state`: it lists states, shows them, exports them into a folder
// and imports them from there. It has release as well, which exports a state and has the manager
// forget it.
package state

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/machine-iac/machine-iac-operator/cmd/kubectl-machine/cli"
	"github.com/machine-iac/machine-iac-operator/internal/inspect"
)

// NewCommand returns the group of commands.
func NewCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "state",
		Short: "Inspect the states of Machines, export and import them",
		Long:  `Inspect the states of Machines: what the engine knows of their infrastructure. They are kept in Secrets. Only import changes something.`,
		Example: `  # Which states there are, and which of them have no Machine any more
  kubectl machine state list

  # One of them
  kubectl machine state show workers-x7k2p`,
	}
	command.AddCommand(newList(), newShow(), newPull(), newExport(), newImport())
	return command
}

func newList() *cobra.Command {
	var i cli.Inspection
	command := &cobra.Command{
		Use:   "list [MACHINE...]",
		Short: "List the states of Machines",
		Long: `List the states of Machines: how many resources each has, when it was written, whether a run holds its lock. A state whose Machine is
Gone stays until its instance is known to be destroyed.`,
		Example: `  # All in the namespace
  kubectl machine state list -n openshift-machine-api

  # With the names of the Secrets
  kubectl machine state list -o wide`,
		ValidArgsFunction: i.Complete(stateNames),
		RunE: func(command *cobra.Command, names []string) error {
			facts, err := i.Read(command, names, inspect.Want{States: true})
			if err != nil {
				return err
			}
			list, err := inspect.States(facts)
			if err != nil {
				return err
			}
			if len(list.Items) == 0 {
				i.Nothing(command, "There are no states of Machines", facts.Namespace)
			}
			return i.Printer.Print(command.OutOrStdout(), list)
		},
	}
	i.Register(command)
	i.RegisterSelection(command)
	i.RegisterOutput(command)
	return command
}

func newShow() *cobra.Command {
	var i cli.Inspection
	var sensitive bool
	command := &cobra.Command{
		Use:   "show MACHINE",
		Short: "Show the state of a Machine, without sensitive values",
		Long: `Show the state of a Machine: resources with their attributes, and outputs. A Machine that is gone is named by its last name or its UID.

Values that the state marks, values with a name such as password or user_data, and copies of them are shown as (sensitive).`,
		Example: `  # What the engine knows of a Machine's instance
  kubectl machine state show workers-x7k2p

  # All of it, for a script
  kubectl machine state show workers-x7k2p --show-sensitive -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: i.CompleteOne(stateNames),
		RunE: func(command *cobra.Command, names []string) error {
			cluster, err := i.Open()
			if err != nil {
				return err
			}
			snapshot, err := cluster.State(command.Context(), names[0])
			if err != nil {
				return err
			}
			shown, err := inspect.NewState(snapshot, sensitive)
			if err != nil {
				return err
			}
			if sensitive {
				warnSecrets(command)
			}
			return i.Printer.Print(command.OutOrStdout(), shown)
		},
	}
	i.Register(command)
	i.RegisterStateKey(command)
	i.RegisterOutput(command)
	command.Flags().BoolVar(&sensitive, "show-sensitive", false, "Show sensitive values too.")
	return command
}

func newPull() *cobra.Command {
	var i cli.Inspection
	var serial uint64
	command := &cobra.Command{
		Use:   "pull MACHINE",
		Short: "Print the state of a Machine as it is, including secrets",
		Long: `Print the state of a Machine as the engine wrote it, including secrets. A Machine that is gone is named by its last name or its UID.

To back states up and to put them back, use export and import: a state alone lacks what belongs to it.`,
		Example: `  # Into a file that only you can read
  (umask 077; kubectl machine state pull workers-x7k2p >workers-x7k2p.tfstate)

  # The version before the current one
  kubectl machine state pull workers-x7k2p --serial 3`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: i.CompleteOne(stateNames),
		RunE: func(command *cobra.Command, names []string) error {
			cluster, err := i.Open()
			if err != nil {
				return err
			}
			raw, err := pull(command.Context(), cluster, names[0], serial, command.Flags().Changed("serial"))
			if err != nil {
				return err
			}
			warnSecrets(command)
			_, err = command.OutOrStdout().Write(raw)
			return err
		},
	}
	i.Register(command)
	i.RegisterStateKey(command)
	command.Flags().Uint64Var(&serial, "serial", 0, "Serial of an earlier version. Default: the current one.")
	_ = command.RegisterFlagCompletionFunc("serial", cobra.NoFileCompletions)
	return command
}

func pull(ctx context.Context, cluster *inspect.Cluster, machine string, serial uint64, earlier bool) ([]byte, error) {
	if earlier {
		return cluster.Version(ctx, machine, serial)
	}
	snapshot, err := cluster.State(ctx, machine)
	if err != nil {
		return nil, err
	}
	if snapshot.Raw == nil {
		return nil, fmt.Errorf("the Machine %q has no state yet: a run has begun, and the engine has written nothing",
			machine)
	}
	return snapshot.Raw, nil
}

func warnSecrets(command *cobra.Command) {
	fmt.Fprintln(command.ErrOrStderr(),
		"warning: this holds credentials and user data in the clear; keep it private, and remove the copies that you make")
}

func stateNames(ctx context.Context, cluster *inspect.Cluster) ([]string, error) {
	return cluster.StateNames(ctx)
}
