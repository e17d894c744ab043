package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-iac/machine-iac-operator/cmd/kubectl-machine/cli"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/internal/state/pulumikeys"
)

func newPulumiKey() *cobra.Command {
	command := &cobra.Command{
		Use:   "pulumi-key",
		Short: "Replace the key that checkpoints of Pulumi are encrypted with",
		Long: `Replace the key that checkpoints of Pulumi are encrypted with. The keys of a cluster are in the Secret machine-iac-pulumi-keys of the
manager's namespace. To replace one: rotate, wait until list shows no checkpoint with the older key, prune.`,
		Example: `  # Which keys there are, and what uses them
  kubectl machine pulumi-key list -n machine-iac-system

  # Have all runs encrypt with a new key
  kubectl machine pulumi-key rotate -n machine-iac-system`,
	}
	command.AddCommand(newPulumiKeyList(), newPulumiKeyRotate(), newPulumiKeyPrune())
	return command
}

// keyFlags are what the commands about keys have in common.
type keyFlags struct {
	cli.Inspection
	machines string
}

// Register adds the flags of a command about keys.
func (f *keyFlags) Register(command *cobra.Command) {
	f.ClusterFlags.Register(command, "Namespace of the manager, where the keys are. Default: the context's.")
}

// registerMachines adds the namespace of the checkpoints, and the keys that they are encrypted with
// as states.
func (f *keyFlags) registerMachines(command *cobra.Command) {
	f.RegisterStateKey(command)
	command.Flags().StringVar(&f.machines, "machines-namespace",
		"", "Only namespace with states of Machines. Default: read all namespaces.")
	_ = command.RegisterFlagCompletionFunc("machines-namespace", f.Complete(cli.NamesOf("Namespace")))
}

// with calls use with the keys and, if requested, their uses, within the timeout.
func (f *keyFlags) with(command *cobra.Command, use func(context.Context, *pulumikeys.Keys, *state.Store) error) error {
	if err := f.ValidateOutput(); err != nil {
		return err
	}
	live, namespace, err := f.Connect()
	if err != nil {
		return err
	}
	keys, err := pulumikeys.New(live, pulumikeys.Options{Namespace: namespace})
	if err != nil {
		return err
	}
	options, err := f.StateOptions()
	if err != nil {
		return err
	}
	return use(command.Context(), keys, state.New(live, options))
}

func newPulumiKeyList() *cobra.Command {
	var f keyFlags
	command := &cobra.Command{
		Use:   "list",
		Short: "List the keys, and how many checkpoints use each",
		Long: `List the keys, and how many checkpoints are encrypted with each: current ones, and earlier versions. The keys
themselves are not shown.`,
		Example: `  # The keys of a cluster
  kubectl machine pulumi-key list -n machine-iac-system`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			return f.with(command, func(ctx context.Context, keys *pulumikeys.Keys, store *state.Store) error {
				uses, err := pulumikeys.Uses(ctx, store, f.machines)
				if err != nil {
					return err
				}
				entries, err := keys.List(ctx)
				if err != nil {
					return err
				}
				list := listOf(entries, uses)
				if len(list.Items) == 0 {
					f.Nothing(command, "There are no keys", f.namespaceOrContext())
				}
				return f.Printer.Print(command.OutOrStdout(), list)
			})
		},
	}
	f.Register(command)
	f.registerMachines(command)
	f.RegisterOutput(command)
	return command
}

// namespaceOrContext returns the namespace of the keys.
func (f *keyFlags) namespaceOrContext() string {
	namespace, _, err := f.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return *f.Namespace
	}
	return namespace
}

// listOf joins keys and their uses. Missing keys come last.
func listOf(entries []pulumikeys.Entry, uses map[string]pulumikeys.Use) *keyList {
	list := &keyList{Items: []encryptionKey{}, Now: time.Now()}
	left := maps.Clone(uses)
	for _, entry := range entries {
		use := left[entry.Salt]
		delete(left, entry.Salt)
		list.Items = append(list.Items, encryptionKey{
			ID: entry.ID, Current: entry.Current, Checkpoints: use.Checkpoints, Versions: use.Versions,
			Made: timeOf(entry.Created), Replaced: timeOf(entry.Replaced),
		})
	}
	for _, salt := range slices.Sorted(maps.Keys(left)) {
		list.Items = append(list.Items, encryptionKey{
			ID: pulumikeys.IDOf(salt), Missing: true, Checkpoints: left[salt].Checkpoints, Versions: left[salt].Versions,
		})
	}
	return list
}

func timeOf(at time.Time) *metav1.Time {
	if at.IsZero() {
		return nil
	}
	found := metav1.NewTime(at)
	return &found
}

func newPulumiKeyRotate() *cobra.Command {
	var f keyFlags
	command := &cobra.Command{
		Use:   "rotate",
		Short: "Make a key, and have all runs encrypt with it",
		Long: `Make a key, and have all runs encrypt with it. A run encrypts its checkpoint anew before it starts, so the key spreads with the next drift
checks; nothing has to be restarted. The older keys stay for what is encrypted with them.`,
		Example: `  # Replace the key
  kubectl machine pulumi-key rotate -n machine-iac-system`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			return f.with(command, func(ctx context.Context, keys *pulumikeys.Keys, _ *state.Store) error {
				entry, err := keys.Rotate(ctx)
				if err != nil {
					return err
				}
				fmt.Fprintf(command.OutOrStdout(), "%s is the current key now\n", entry.ID)
				return nil
			})
		},
	}
	f.Register(command)
	return command
}

func newPulumiKeyPrune() *cobra.Command {
	var f keyFlags
	var forget bool
	command := &cobra.Command{
		Use:   "prune",
		Short: "Remove the keys that nothing uses any more",
		Long: `Remove the keys that nothing uses any more. One stays that a checkpoint is encrypted with, or an earlier version, or that
was replaced less than a day ago, since a run that began before may still write with it. The exit code is 1 while an older key stays.`,
		Example: `  # Remove what nothing uses
  kubectl machine pulumi-key prune -n machine-iac-system

  # Give up earlier versions of states that are encrypted with older keys
  kubectl machine pulumi-key prune -n machine-iac-system --forget-versions`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			return f.with(command, func(ctx context.Context, keys *pulumikeys.Keys, store *state.Store) error {
				uses, err := pulumikeys.Uses(ctx, store, f.machines)
				if err != nil {
					return err
				}
				return prune(ctx, command.OutOrStdout(), pruning{keys: keys, uses: uses, forget: forget})
			})
		},
	}
	f.Register(command)
	f.registerMachines(command)
	command.Flags().BoolVar(&forget, "forget-versions", false,
		"Also remove keys of earlier versions, which then cannot be read.")
	return command
}

type pruning struct {
	keys *pulumikeys.Keys
	uses map[string]pulumikeys.Use
	// forget ignores earlier versions.
	forget bool
}

var errKeysStay = errors.New("older keys stay; try again when nothing uses them")

// prune removes keys, and reports on each.
func prune(ctx context.Context, out io.Writer, p pruning) error {
	var inUse []string
	for salt, use := range p.uses {
		if use.Checkpoints > 0 || use.Versions > 0 && !p.forget {
			inUse = append(inUse, salt)
		}
	}
	removed, err := p.keys.Prune(ctx, inUse)
	if err != nil {
		return err
	}
	for _, entry := range removed {
		fmt.Fprintf(out, "%s is removed\n", entry.ID)
	}
	left, err := p.keys.List(ctx)
	if err != nil {
		return err
	}
	stays := false
	for _, entry := range left {
		if entry.Current {
			continue
		}
		stays = true
		why := fmt.Sprintf("it was replaced at %s, and a run that began before may write with it for %s",
			entry.Replaced.Format(time.RFC3339), p.keys.Grace())
		if use := p.uses[entry.Salt]; slices.Contains(inUse, entry.Salt) {
			why = fmt.Sprintf("%d checkpoints and %d earlier versions are encrypted with it", use.Checkpoints, use.Versions)
		}
		fmt.Fprintf(out, "%s stays: %s\n", entry.ID, why)
	}
	if stays {
		return errKeysStay
	}
	return nil
}
