package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/cmd/kubectl-machine/cli"
	"github.com/machine-iac/machine-iac-operator/internal/backup"
	"github.com/machine-iac/machine-iac-operator/internal/inspect"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// releaseInterval is how often release looks whether the manager has forgotten a state.
const releaseInterval = 500 * time.Millisecond

// releaseFlags are those of release.
type releaseFlags struct {
	cli.BackupFlags
	into    folderFlags
	timeout time.Duration
}

// NewRelease returns the command.
func NewRelease() *cobra.Command {
	var f releaseFlags
	command := &cobra.Command{
		Use:   "release MACHINE...",
		Short: "Forget the state of Machines whose instances stay, for another actuator to take over",
		Long: `Forget the state of Machines whose instances stay as they are. Each state is written into a folder first, as 'kubectl machine state export'
does. Then the Machine gets the annotation machine-iac.io/adoption: Release, and the manager removes its state without a destroy and leaves the
Machine alone from then on, so that another actuator can take it over. The command waits until that is done.

To take a Machine back, remove the annotation and import the state again.`,
		Example: `  # Let go of a Machine
  kubectl machine release workers-x7k2p -o released -n openshift-machine-api

  # Of all of a MachineSet
  kubectl machine release machineset/workers -o released`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: f.Complete(stateNames),
		RunE: func(command *cobra.Command, names []string) error {
			if _, err := backup.ParseRecipients(f.into.recipients, f.into.files); err != nil {
				return err
			}
			facts, err := f.Read(command, names, inspect.Want{States: true})
			if err != nil {
				return err
			}
			stored, err := releasable(facts, names)
			if err != nil {
				return err
			}
			return f.release(command, facts.Machines, stored)
		},
	}
	f.Register(command)
	f.RegisterManager(command)
	f.into.register(command)
	command.Flags().DurationVar(&f.timeout, "timeout", 5*time.Minute, "How long to wait for the manager.")
	_ = command.RegisterFlagCompletionFunc("timeout", cobra.NoFileCompletions)
	return command
}

// releasable returns the states of Machines to release, in order, or why one of them cannot be
// released.
func releasable(facts *inspect.Facts, names []string) ([]state.Key, error) {
	list, err := inspect.States(facts)
	if err != nil {
		return nil, err
	}
	if len(facts.Machines) == 0 {
		return nil, fmt.Errorf("there is no Machine to release: %s has none", strings.Join(names, ", "))
	}
	var keys []state.Key
	for i := range facts.Machines {
		machine := &facts.Machines[i]
		at := slices.IndexFunc(list.Items, func(s inspect.StoredState) bool { return s.UID == machine.UID })
		if at < 0 || list.Items[at].Serial == 0 && list.Items[at].Written == nil {
			return nil, fmt.Errorf("the Machine %s has no state: there is nothing to release; nothing was changed", machine.Name)
		}
		stored := &list.Items[at]
		if stored.Intent != nil {
			return nil,
				fmt.Errorf("the Machine %s: a run has not settled (%s), so that its instance is not known for sure: wait until the manager has found out; nothing was changed",
					machine.Name, stored.Intent.Operation)
		}
		keys = append(keys, state.Key{Namespace: stored.Namespace, Name: stored.Secret})
	}
	for i := range list.Items {
		if !slices.ContainsFunc(facts.Machines, func(m machinev1beta1.Machine) bool { return m.UID == list.Items[i].UID }) {
			return nil,
				fmt.Errorf("the Machine %s is gone: its state is one without a Machine, and cannot be released; nothing was changed", list.Items[i].Machine)
		}
	}
	return keys, nil
}

// release writes the states, asks the manager to forget them, and waits.
func (f *releaseFlags) release(command *cobra.Command, machines []machinev1beta1.Machine, keys []state.Key) error {
	ctx := command.Context()
	source, live, err := f.Source()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	for i := range machines {
		if err := waitForRun(ctx, source.States, &machines[i], keys[i]); err != nil {
			return fmt.Errorf("%w; nothing was changed", err)
		}
	}
	written, err := writeBackup(ctx, command, source, keys, &f.into, false)
	if err != nil {
		return err
	}
	if len(written.States) != len(machines) {
		return errors.New("a state is gone meanwhile; nothing was released")
	}
	for i := range machines {
		if err := requestRelease(ctx, live, source.States, &machines[i], keys[i], written.States[i].SHA256); err != nil {
			return err
		}
	}
	var late []string
	for i := range machines {
		name := machines[i].Name
		if err := waitForRelease(ctx, live, source.States, &machines[i], keys[i]); err != nil {
			fmt.Fprintf(command.ErrOrStderr(), "machine/%s is not released yet: %s\n", name, err)
			late = append(late, name)
			continue
		}
		fmt.Fprintf(command.OutOrStdout(), "machine/%s released; its state is in %s\n", name, f.into.folder)
	}
	if len(late) > 0 {
		return fmt.Errorf("the manager has not released %s within %s: it does once it runs and no run is in progress; to take the request back, remove the annotation %s",
			strings.Join(late, ", "), f.timeout, lifecycle.AdoptionAnnotation)
	}
	return nil
}

// requestRelease sets the annotation on a Machine if its state has not changed since it was
// written.
func requestRelease(ctx context.Context, live client.Client, states *state.Store, machine *machinev1beta1.Machine,
	key state.Key, written string) error {
	if err := waitForRun(ctx, states, machine, key); err != nil {
		return fmt.Errorf("%w; it is not released, and those before it are", err)
	}
	stored, err := states.Get(ctx, key)
	if err != nil {
		return fmt.Errorf("reading the state of Machine %s once more: %w", machine.Name, err)
	}
	if stored.Lock != nil || backup.Checksum(stored.Raw) != written {
		return fmt.Errorf("the Machine %s: a run has begun meanwhile; it is not released, and those before it are; export and release it again", machine.Name)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": machine.UID, "annotations": map[string]string{lifecycle.AdoptionAnnotation: string(lifecycle.AdoptionRelease)},
	}})
	if err != nil {
		return err
	}
	if err := live.Patch(ctx, machine.DeepCopy(), client.RawPatch("application/merge-patch+json", patch)); err != nil {
		return fmt.Errorf("setting the annotation %s on the Machine %s: %w", lifecycle.AdoptionAnnotation, machine.Name, err)
	}
	return nil
}

// waitForRun waits until no run, such as a drift check, has the state.
func waitForRun(ctx context.Context, states *state.Store, machine *machinev1beta1.Machine, key state.Key) error {
	var held *state.Lock
	err := wait.PollUntilContextCancel(ctx, releaseInterval, true, func(ctx context.Context) (bool, error) {
		stored, err := states.Get(ctx, key)
		if err != nil {
			return false, err
		}
		held = stored.Lock
		return held == nil, nil
	})
	switch {
	case err != nil && held != nil:
		return fmt.Errorf("the Machine %s: a run is in progress (%s) that has not ended in time", machine.Name,
			held.Operation)
	case err != nil:
		return fmt.Errorf("reading the state of Machine %s: %w", machine.Name, err)
	}
	return nil
}

// waitForRelease waits until the state is gone and the Machine reports its release.
func waitForRelease(ctx context.Context, live client.Client, states *state.Store, machine *machinev1beta1.Machine,
	key state.Key) error {
	last := "its state is still there"
	err := wait.PollUntilContextCancel(ctx, releaseInterval, true, func(ctx context.Context) (bool, error) {
		_, err := states.Get(ctx, key)
		if !errors.Is(err, state.ErrNotFound) {
			return false, client.IgnoreNotFound(err)
		}
		now := &machinev1beta1.Machine{}
		if err := live.Get(ctx, client.ObjectKeyFromObject(machine), now); err != nil {
			return false, err
		}
		condition := inspect.AdoptedCondition(now)
		if condition == nil || condition.Status != "False" || condition.Reason != "Released" {
			last = "its state is removed, and its status does not say so yet"
			return false, nil
		}
		return true, nil
	})
	if err != nil && ctx.Err() != nil {
		return errors.New(last)
	}
	return err
}
