// Command kubectl-machine is the kubectl plugin of machine-iac-operator, `kubectl machine`: its
// root and the small commands, one file each. Groups of commands have packages of their own below.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/machine-iac/machine-iac-operator/cmd/kubectl-machine/cli"
	"github.com/machine-iac/machine-iac-operator/cmd/kubectl-machine/module"
	"github.com/machine-iac/machine-iac-operator/cmd/kubectl-machine/ownership"
	"github.com/machine-iac/machine-iac-operator/cmd/kubectl-machine/plan"
	"github.com/machine-iac/machine-iac-operator/cmd/kubectl-machine/rollout"
	"github.com/machine-iac/machine-iac-operator/cmd/kubectl-machine/state"
	"github.com/machine-iac/machine-iac-operator/cmd/kubectl-machine/uninstall"
)

// version is set by the linker.
var version = "development"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run returns the exit code: 0 for success, 1 for an error, or another one that a flag requests.
func run(ctx context.Context, arguments []string, out, errOut io.Writer) int {
	out, errOut = &cli.Visible{Out: out}, &cli.Visible{Out: errOut}
	root := newRoot()
	root.SetArgs(arguments)
	root.SetOut(out)
	root.SetErr(errOut)
	err := root.ExecuteContext(ctx)
	var code cli.ExitCode
	if err == nil {
		return 0
	}
	if errors.As(err, &code) {
		return int(code)
	}
	if !errors.Is(err, cli.ErrReported) {
		fmt.Fprintln(errOut, "error:", err)
	}
	return 1
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-machine",
		Short: "Work with Machines that are run on OpenTofu and Terraform",
		Long: `Work with Machines that are run on OpenTofu and Terraform, and with the provider modules behind them.

The file is called kubectl-machine; on PATH, kubectl runs it as "kubectl machine".`,
		Example: `  # Show what a MachineSet would create
  kubectl machine plan -f machineset.yaml

  # Show the Machines of a cluster, with their instances and Nodes
  kubectl machine tree -n openshift-machine-api

  # Create a new provider module, and check it
  kubectl machine module new acme
  kubectl machine module check acme`,
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl machine"},
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetFlagErrorFunc(func(command *cobra.Command, err error) error {
		return fmt.Errorf("%w; '%s --help' lists the flags", err, command.CommandPath())
	})
	root.AddCommand(
		module.NewCommand(), plan.NewCommand(), rollout.NewCommand(), newTree(), state.NewCommand(), newRuns(), newLogs(),
		newDrift(), newSecrets(), newModules(), ownership.NewOrphans(), ownership.NewAdopt(), state.NewRelease(), newPulumiKey(),
		uninstall.NewCommand(), newCompletion(), newVersion(),
	)
	return root
}
