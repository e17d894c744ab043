package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/cmd/kubectl-machine/cli"
	"github.com/machine-iac/machine-iac-operator/internal/inspect"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
)

const (
	// driftInterval is how often a Machine is read while waiting for a drift check.
	driftInterval = time.Second
	// defaultDriftWait is how long to wait for a drift check.
	defaultDriftWait = 5 * time.Minute
)

// driftRequest requests drift checks of Machines and waits for them.
type driftRequest struct {
	now  bool
	wait time.Duration
}

func (d *driftRequest) register(command *cobra.Command) {
	command.Flags().BoolVar(&d.now, "now", false,
		"Check the named or selected Machines for drift now.")
	command.Flags().DurationVar(&d.wait, "wait", defaultDriftWait,
		"How long to wait for the checks, with --now. 0 only requests them.")
}

// validate checks the flags before anything is read.
func (d *driftRequest) validate(command *cobra.Command, i *cli.Inspection, names []string) error {
	switch {
	case !d.now && command.Flags().Changed("wait"):
		return errors.New("--wait belongs to --now")
	case d.now && len(names) == 0 && i.Labels == "":
		return errors.New("--now takes the Machines to check: name them, or select them with -l")
	}
	return nil
}

// check requests a drift check of all Machines and reads them again. It changes nothing if one of
// them has no instance that could be checked. late are the Machines whose check did not finish in
// time.
func (d *driftRequest) check(ctx context.Context, live client.Client, machines []machinev1beta1.Machine) (late []string,
	err error) {
	for i := range machines {
		if why := inspect.Uncheckable(&machines[i]); why != "" {
			return nil, fmt.Errorf("the drift of the Machine %s cannot be checked: %s; nothing was requested",
				machines[i].Name, why)
		}
	}
	request := time.Now().UTC().Format(time.RFC3339Nano)
	former := make([]string, len(machines))
	for i := range machines {
		former[i] = record.CheckRequest(machines[i].Annotations)
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
			"uid": machines[i].UID, "annotations": map[string]string{record.CheckDriftAnnotation: request},
		}})
		if err != nil {
			return nil, err
		}
		if err := live.Patch(ctx, machines[i].DeepCopy(),
			client.RawPatch("application/merge-patch+json", patch)); err != nil {
			return nil, fmt.Errorf("annotating the Machine %s: %w", machines[i].Name, err)
		}
	}
	if d.wait <= 0 {
		return nil, nil
	}
	waiting, cancel := context.WithTimeout(ctx, d.wait)
	defer cancel()
	for i := range machines {
		err := wait.PollUntilContextCancel(waiting, driftInterval, true, func(ctx context.Context) (bool, error) {
			now := &machinev1beta1.Machine{}
			if err := live.Get(ctx, client.ObjectKeyFromObject(&machines[i]), now); err != nil {
				return false, err
			}
			machines[i] = *now
			return checked(now, request, former[i])
		})
		switch {
		case ctx.Err() != nil:
			return nil, errors.New("interrupted; the checks stay requested, and 'kubectl machine drift' shows their results")
		case err != nil && waiting.Err() != nil:
			late = append(late, machines[i].Name)
		case err != nil:
			return nil, fmt.Errorf("waiting for the drift check of the Machine %s: %w", machines[i].Name, err)
		}
	}
	return late, nil
}

// checked reports whether a requested check is done, or one that something else has requested since: with a value that
// is not the former one. The error says why none can come.
func checked(machine *machinev1beta1.Machine, request, former string) (bool, error) {
	last, done := record.CheckRequest(machine.Annotations), inspect.ProviderStatus(machine).LastDriftCheckRequest
	if done == request || last != "" && last != former && done == last {
		return true, nil
	}
	if !machine.DeletionTimestamp.IsZero() {
		return false, errors.New("no check can come: it is being deleted")
	}
	return false, nil
}

// tooLate returns the error for Machines whose check did not finish in time.
func (d *driftRequest) tooLate(late []string) error {
	if len(late) == 0 {
		return nil
	}
	return fmt.Errorf("the drift of %s was not checked within %s; the check stays requested. 'kubectl machine runs %s' shows what goes on, and 'kubectl machine logs %s' why a check failed",
		strings.Join(late, ", "), d.wait, late[0], late[0])
}
