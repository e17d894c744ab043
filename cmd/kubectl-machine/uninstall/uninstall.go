// Package uninstall is `kubectl machine uninstall`: it removes the operator and what it has
// installed, and keeps the Machines, their states and the CRDs.
package uninstall

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/cmd/kubectl-machine/cli"
	"github.com/machine-iac/machine-iac-operator/internal/inspect"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// defaultTimeout is longer than the manager's Pods may take to end their runs.
const defaultTimeout = 10 * time.Minute

// Values of --dry-run, as kubectl has them.
const (
	dryRunNone   = "none"
	dryRunClient = "client"
	dryRunServer = "server"
)

type options struct {
	cli.ClusterFlags
	evenWithMachines bool
	purge            bool
	dryRun           string
	timeout          time.Duration
}

// NewCommand returns the command.
func NewCommand() *cobra.Command {
	var o options
	command := &cobra.Command{
		Use:   "uninstall",
		Short: "Remove the operator and what it has installed; Machines, states and CRDs stay",
		Long: `Remove the operator from its namespace, and what it has installed. The operator is stopped first, so that it restores nothing. Then the
webhooks are removed, then the manager, which ends its runs and saves their states, then the rest. Machines, their states and instances, and the CRDs
stay as they are.

While there are Machines or states nothing is removed, unless --even-with-machines is set: nothing would manage them any more, and a Machine that is
deleted keeps its finalizer until the operator is installed again.

With --purge, settings, keys, contents of modules and the CRDs are removed as well, and all MachineHealthChecks with the CRDs. What you applied from
install/legacy or config stays; remove it with 'kubectl delete -k'. --purge is refused while there is a Machine, MachineSet,
MachineDeployment or state.`,
		Example: `  # Show what would be removed, and what would stay
  kubectl machine uninstall -n openshift-machine-api --dry-run=client

  # Remove the operator
  kubectl machine uninstall -n openshift-machine-api`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return o.run(command) },
	}
	o.Register(command, "Namespace of the installation. Default: the context's.")
	flags := command.Flags()
	flags.BoolVar(&o.evenWithMachines, "even-with-machines", false,
		"Uninstall even if there are Machines or states, which stay.")
	flags.BoolVar(&o.purge, "purge", false,
		"Also remove settings, keys, contents of modules and CRDs. Refused while there are Machines, "+
			"MachineSets, MachineDeployments or states.")
	flags.StringVar(&o.dryRun, "dry-run", dryRunNone,
		"Only print what would be removed: client, or server to have the API server check each request. none removes.")
	flags.Lookup("dry-run").NoOptDefVal = dryRunClient
	flags.DurationVar(&o.timeout, "timeout", defaultTimeout, "How long to wait for Pods to end, in all.")
	for name, complete := range map[string]cli.Completion{
		"timeout": cobra.NoFileCompletions, "dry-run": cobra.FixedCompletions([]string{dryRunNone, dryRunClient,
			dryRunServer}, cobra.ShellCompDirectiveNoFileComp),
	} {
		_ = command.RegisterFlagCompletionFunc(name, complete)
	}
	return command
}

func (o *options) validate() error {
	switch o.dryRun {
	case dryRunNone, dryRunClient, dryRunServer:
	default:
		return fmt.Errorf("--dry-run is %q; set it to none, client or server", o.dryRun)
	}
	if o.purge && o.evenWithMachines {
		return errors.New("--purge removes the CRDs and --even-with-machines keeps the Machines: choose one")
	}
	return nil
}

func (o *options) run(command *cobra.Command) error {
	if err := o.validate(); err != nil {
		return err
	}
	config, namespace, err := o.Configuration()
	if err != nil {
		return err
	}
	cluster, err := inspect.New(config, namespace, state.Options{})
	if err != nil {
		return err
	}
	live, err := client.New(config, client.Options{})
	if err != nil {
		return fmt.Errorf("reaching the API server at %s: %w", config.Host, err)
	}
	ctx, cancel := context.WithTimeout(command.Context(), o.timeout)
	defer cancel()
	r := &removal{live: live, namespace: namespace, dryRun: o.dryRun, purge: o.purge, out: command.OutOrStdout(),
		errOut: command.ErrOrStderr()}
	if err := r.find(ctx); err != nil {
		return err
	}
	stays, err := readRemains(ctx, cluster, live)
	if err != nil {
		return err
	}
	if stays.machines() && !o.evenWithMachines {
		if o.purge {
			return stays.unpurgeable(namespace)
		}
		if o.dryRun == dryRunNone {
			return stays.refusal(namespace)
		}
		fmt.Fprintln(command.ErrOrStderr(), "note: without --even-with-machines nothing is removed while there are",
			stays.counts())
	}
	if o.purge {
		if err := purgeable(ctx, live); err != nil {
			return err
		}
	}
	if err := r.run(ctx); err != nil {
		return err
	}
	if o.purge {
		return o.removeRest(ctx, r, cluster)
	}
	stays.print(command.OutOrStdout(), namespace)
	return nil
}

// removeRest purges what stays. It looks again: a Machine may have come while Pods ended.
func (o *options) removeRest(ctx context.Context, r *removal, cluster *inspect.Cluster) error {
	stays, err := readRemains(ctx, cluster, r.live)
	if err != nil {
		return err
	}
	if stays.machines() && o.dryRun == dryRunNone {
		return stays.unpurgeable(r.namespace)
	}
	if err := purgeable(ctx, r.live); err != nil {
		return err
	}
	return stays.purge(ctx, r)
}

// unpurgeable returns why nothing of the rest is removed.
func (s *remains) unpurgeable(namespace string) error {
	return fmt.Errorf("--purge removes the CRDs: first delete what is in the namespace %s, %s, and wait until it is gone; "+
		"then repeat the command", namespace, s.counts())
}

// refusal returns why nothing is removed.
func (s *remains) refusal(namespace string) error {
	return errors.New(s.counts() + " in the namespace " + namespace +
		" would have no manager; nothing was removed\n" + strings.Join(s.lines(), "\n") +
		"\ndelete the MachineSets and Machines and wait until they are gone, or set --even-with-machines to leave them, their states and instances as they are")
}
