// Command devcluster runs a Kubernetes cluster on this machine for development and tests: etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler and KWOK, on loopback, from the binaries that 'make tools' builds.
//
// Unlike kind, kwokctl and setup-envtest it needs only a Go module proxy: no container runtime, images or binary
// downloads.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/machine-iac/machine-iac-operator/hack/devcluster/cluster"
	"github.com/machine-iac/machine-iac-operator/hack/lab"
)

// errNotRunning sets the exit status of "status" to 1.
var errNotRunning = errors.New("not every component runs; 'devcluster up' starts what is missing")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := lab.Execute(ctx, newCommand(), os.Args[1:])
	stop()
	os.Exit(code)
}

func newCommand() *cobra.Command {
	root := &cobra.Command{
		Use: "devcluster",
		Long: `Run a Kubernetes cluster on this machine for development and tests.

Components: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok`,
		Args: func(_ *cobra.Command, operands []string) error {
			if len(operands) > 0 {
				return lab.Usage("there is no command %q", operands[0])
			}
			return lab.Usage("no command given")
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	var o cluster.Options
	flags := root.PersistentFlags()
	flags.StringVar(&o.Dir, "dir", ".dev", "folder that holds the cluster's data")
	flags.StringVar(&o.Bin, "bin", "bin", "folder that holds the binaries")
	flags.DurationVar(&o.Timeout, "timeout", 2*time.Minute, "how long the command may take")
	root.AddCommand(upCommand(&o), downCommand(&o), kubeconfigCommand(&o),
		newSubcommand(&o, "status", "Show each component. Exit with 1 unless all of them run", status),
		newSubcommand(&o, "stop COMPONENT", "Stop one component", one("stopped", (*cluster.Cluster).Stop)),
		newSubcommand(&o, "start COMPONENT", "Start one component on the port that it had",
			one("running", (*cluster.Cluster).Start)))
	return root
}

// call is a command that runs.
type call struct {
	*cluster.Cluster
	out      io.Writer
	operands []string
}

func newSubcommand(o *cluster.Options, use, short string, run func(context.Context, call) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short,
		Args: func(command *cobra.Command, operands []string) error {
			if want := strings.Count(use, " "); len(operands) != want {
				return lab.Usage("%s takes %d operands, got %d %q", command.Name(), want, len(operands), operands)
			}
			return nil
		},
		RunE: func(command *cobra.Command, operands []string) error {
			opened, err := cluster.New(*o)
			if err != nil {
				return err
			}
			return run(command.Context(), call{Cluster: opened, out: command.OutOrStdout(), operands: operands})
		},
	}
}

func upCommand(o *cluster.Options) *cobra.Command {
	command := newSubcommand(o, "up", "Start what does not run, and wait until it is ready", up)
	command.Flags().DurationVar(&o.PodDeleteDelay, "pod-delete-delay", 3*time.Second,
		"how long a deleted Pod stays before it is gone; takes effect when kwok starts")
	command.Flags().DurationVar(&o.NodeMonitorGrace, "node-monitor-grace-period", 2*time.Minute,
		"how long a Node may miss its heartbeats before it is not ready; takes effect when kube-controller-manager "+
			"starts")
	return command
}

func up(ctx context.Context, c call) error {
	if err := c.Up(ctx, c.out); err != nil {
		return err
	}
	file := c.AdminKubeconfig()
	if working, err := os.Getwd(); err == nil {
		if short, err := filepath.Rel(working, file); err == nil && filepath.IsLocal(short) {
			file = short
		}
	}
	_, err := fmt.Fprintf(c.out, "\nThe cluster serves %s. To use it:\n  export KUBECONFIG=%s\n", c.Server(), file)
	return err
}

func downCommand(o *cluster.Options) *cobra.Command {
	var purge bool
	command := newSubcommand(o, "down", "Stop everything. The data stays, so that 'up' continues with it",
		func(ctx context.Context, c call) error {
			begun := time.Now()
			ended, stop := "stopped, its data stays in", c.Down
			if purge {
				ended, stop = "stopped and removed:", c.Purge
			}
			if err := stop(ctx); err != nil {
				return err
			}
			return c.done(begun, "cluster", fmt.Sprintf("%s %s", ended, c.Dir()))
		})
	command.Flags().BoolVar(&purge, "purge", false, "remove the data folder, too")
	return command
}

// one runs an operation on the component named on the command line.
func one(result string, operation func(*cluster.Cluster, context.Context, cluster.Component) error,
) func(context.Context, call) error {
	return func(ctx context.Context, c call) error {
		component, err := cluster.ParseComponent(c.operands[0])
		if err != nil {
			return lab.Usage("%w", err)
		}
		begun := time.Now()
		if err := operation(c.Cluster, ctx, component); err != nil {
			return err
		}
		return c.done(begun, string(component), result)
	}
}

func (c call) done(begun time.Time, step, result string) error {
	_, err := fmt.Fprintf(c.out, "%-24s %5.1f s  %s\n", step, time.Since(begun).Seconds(), result)
	return err
}

func status(ctx context.Context, c call) error {
	components, err := c.Status(ctx)
	if err != nil {
		return err
	}
	if err := printStatus(c.out, components); err != nil {
		return err
	}
	for _, component := range components {
		if component.State != cluster.StateRunning {
			return errNotRunning
		}
	}
	return nil
}

func printStatus(out io.Writer, components []cluster.ComponentStatus) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, err := fmt.Fprintln(table, "COMPONENT\tPID\tPORT\tSTATE")
	for _, component := range components {
		state := string(component.State)
		if component.Detail != "" {
			state += ": " + component.Detail
		}
		_, rowErr := fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", component.Component, orDash(component.PID),
			orDash(component.Port), state)
		err = errors.Join(err, rowErr)
	}
	return errors.Join(err, table.Flush())
}

func orDash(number int) string {
	if number == 0 {
		return "-"
	}
	return fmt.Sprint(number)
}

func kubeconfigCommand(o *cluster.Options) *cobra.Command {
	var account, output string
	command := newSubcommand(o, "kubeconfig", "Write a kubeconfig that acts as a service account, valid for 24 hours",
		func(ctx context.Context, c call) error {
			namespace, name, found := strings.Cut(account, "/")
			if !found || namespace == "" || name == "" {
				return lab.Usage("--service-account is %q; give it as NAMESPACE/NAME", account)
			}
			if output == "" {
				return lab.Usage("--output is missing; name the file to write")
			}
			ctx, cancel := context.WithTimeout(ctx, o.Timeout)
			defer cancel()
			return c.ServiceAccountKubeconfig(ctx, namespace, name, output)
		})
	command.Flags().StringVar(&account, "service-account", "", "the service account, as NAMESPACE/NAME (required)")
	command.Flags().StringVar(&output, "output", "", "the file to write (required)")
	return command
}
