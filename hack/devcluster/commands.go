package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/machine-iac/machine-iac-operator/hack/devcluster/cluster"
)

type command struct {
	help     string
	operands int
	declare  func(*flag.FlagSet, *invocation)
	run      func(context.Context, *invocation) error
}

func (c command) operandHelp() string { return strings.Repeat(" COMPONENT", c.operands) }

type invocation struct {
	options        cluster.Options
	cluster        *cluster.Cluster
	operands       []string
	stdout         io.Writer
	purge          bool
	serviceAccount string
	output         string
}

var commands = map[string]command{
	"up": {
		help: "Starts what does not run, and waits until it is ready.",
		declare: func(set *flag.FlagSet, call *invocation) {
			set.DurationVar(&call.options.PodDeleteDelay, "pod-delete-delay", 3*time.Second,
				"how long a deleted Pod stays before it is gone; takes effect when kwok starts")
			set.DurationVar(&call.options.NodeMonitorGrace, "node-monitor-grace-period", 2*time.Minute,
				"how long a Node may miss its heartbeats before it is not ready; takes effect when "+
					"kube-controller-manager starts")
		},
		run: up,
	},
	"down": {
		help: "Stops everything that was started here. The data stays, so that 'up' goes on from it.",
		declare: func(set *flag.FlagSet, call *invocation) {
			set.BoolVar(&call.purge, "purge", false, "remove the data folder, too")
		},
		run: down,
	},
	"status": {help: "Shows each component. Exits 1 unless all of them run.", run: status},
	"stop":   {help: "Stops one component.", operands: 1, run: stop},
	"start":  {help: "Starts one component on the port that it had.", operands: 1, run: start},
	"kubeconfig": {
		help: "Writes a kubeconfig that acts as a service account, valid for 24 hours.",
		declare: func(set *flag.FlagSet, call *invocation) {
			set.StringVar(&call.serviceAccount, "service-account", "",
				"the service account, as NAMESPACE/NAME (required)")
			set.StringVar(&call.output, "output", "", "the file to write (required)")
		},
		run: kubeconfig,
	},
}

func up(ctx context.Context, call *invocation) error {
	if err := call.cluster.Up(ctx, call.stdout); err != nil {
		return err
	}
	file := call.cluster.AdminKubeconfig()
	if working, err := os.Getwd(); err == nil {
		if short, err := filepath.Rel(working, file); err == nil && filepath.IsLocal(short) {
			file = short
		}
	}
	_, err := fmt.Fprintf(call.stdout, "\nThe cluster serves %s. To use it:\n  export KUBECONFIG=%s\n",
		call.cluster.Server(), file)
	return err
}

func down(ctx context.Context, call *invocation) error {
	begun := time.Now()
	ended, stop := "stopped, its data stays in", call.cluster.Down
	if call.purge {
		ended, stop = "stopped and removed:", call.cluster.Purge
	}
	if err := stop(ctx); err != nil {
		return err
	}
	return call.done(begun, "cluster", fmt.Sprintf("%s %s", ended, call.cluster.Dir()))
}

func stop(ctx context.Context, call *invocation) error {
	return call.one(ctx, "stopped", call.cluster.Stop)
}

func start(ctx context.Context, call *invocation) error {
	return call.one(ctx, "running", call.cluster.Start)
}

// one runs an operation on the component named on the command line.
func (call *invocation) one(ctx context.Context, result string,
	operation func(context.Context, cluster.Component) error) error {
	component, err := cluster.ParseComponent(call.operands[0])
	if err != nil {
		return usageError{err}
	}
	begun := time.Now()
	if err := operation(ctx, component); err != nil {
		return err
	}
	return call.done(begun, string(component), result)
}

func (call *invocation) done(begun time.Time, step, result string) error {
	_, err := fmt.Fprintf(call.stdout, "%-24s %5.1f s  %s\n", step, time.Since(begun).Seconds(), result)
	return err
}

func status(ctx context.Context, call *invocation) error {
	components, err := call.cluster.Status(ctx)
	if err != nil {
		return err
	}
	if err := printStatus(call.stdout, components); err != nil {
		return err
	}
	for _, component := range components {
		if component.State != cluster.StateRunning {
			return errNotRunning
		}
	}
	return nil
}

func printStatus(stdout io.Writer, components []cluster.ComponentStatus) error {
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
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

func kubeconfig(ctx context.Context, call *invocation) error {
	namespace, name, found := strings.Cut(call.serviceAccount, "/")
	if !found || namespace == "" || name == "" {
		return usageError{fmt.Errorf("--service-account is %q; give it as NAMESPACE/NAME", call.serviceAccount)}
	}
	if call.output == "" {
		return usageError{errors.New("--output is missing; name the file to write")}
	}
	ctx, cancel := context.WithTimeout(ctx, call.options.Timeout)
	defer cancel()
	return call.cluster.ServiceAccountKubeconfig(ctx, namespace, name, call.output)
}
