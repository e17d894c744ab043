// Command demo shows the operator at work: it applies an example MachineSet, shows what happens, and runs until
// interrupted. It uses a local development cluster with machine-api-operator, or the cluster of the current kubeconfig
// context.
package main

import (
	"context"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
)

const (
	local   = "local"
	current = "current"
)

const (
	example    = "modules/kubemark/examples/machineset.yaml"
	machineSet = "hollow"
	replicas   = 3
	patience   = 3 * time.Minute
)

type options struct {
	cluster, dir, image string
	yes, down           bool
}

func main() { os.Exit(lab.Execute(context.Background(), newCommand(), os.Args[1:])) }

func newCommand() *cobra.Command {
	var o options
	command := &cobra.Command{
		Use:   "demo",
		Short: "Run the operator with an example MachineSet of three simulated Nodes",
		Long: `Run the operator with an example MachineSet of three simulated Nodes, and stay until interrupted. Run it in
the repository, after 'make build' and 'make tools-demo'.

With --cluster=local it starts a development cluster on this machine. The cluster keeps running when the demo ends.

With --cluster=current it installs the operator into the cluster of the current kubeconfig context, as kubectl finds it.
It asks first, unless the API server is on this machine. It refuses a cluster that has the Machine API already. The
manager, and KWOK if the cluster has none, run on this machine with the tokens of their ServiceAccounts, and end with
the demo.

--down deletes the local cluster, and everything that the demo created in another cluster.`,
		Example: `  bin/demo
  bin/demo --cluster=current
  bin/demo --cluster=current --image=registry.example/machine-iac-operator:v1.2.3
  bin/demo --down`,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := o.validate(); err != nil {
				return err
			}
			ctx, stop := lab.UntilEnd(command.Context())
			defer stop()
			return o.run(ctx, command.Flags().Changed("cluster"))
		},
	}
	flags := command.Flags()
	flags.StringVar(&o.cluster, "cluster", local,
		"Where the demo runs: local, or current for the current kubeconfig context.")
	flags.BoolVar(&o.down, "down", false, "Delete the demo. Without --cluster: wherever it was installed from here.")
	flags.BoolVarP(&o.yes, "yes", "y", false, "Do not ask before the demo is installed into the current cluster.")
	flags.StringVar(&o.image, "image", "",
		"With --cluster=current: run operator and manager in the cluster, from this image.")
	flags.StringVar(&o.dir, "dir", "",
		"Folder for data and logs. Default: .dev, or .dev-current with --cluster=current.")
	return command
}

func (o options) validate() error {
	switch {
	case o.cluster != local && o.cluster != current:
		return lab.Usage("invalid --cluster %q: must be %s or %s", o.cluster, local, current)
	case o.image != "" && (o.cluster != current || o.down):
		return lab.Usage("--image %q needs --cluster=current, without --down", o.image)
	}
	return nil
}

// run runs the demo or deletes it. named reports whether the command line sets the location.
func (o options) run(ctx context.Context, named bool) error {
	switch {
	case o.down:
		return o.takeDown(ctx, named)
	case o.cluster == current:
		return runInCurrent(ctx, o)
	default:
		return runLocally(ctx, o.dir)
	}
}
