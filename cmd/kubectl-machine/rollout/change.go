package rollout

import (
	"context"
	"errors"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
)

// change is a verb that changes MachineDeployments, or MachineSets.
type change struct {
	targets
	printing
	manager string
	// done is what is printed after the name of a changed object.
	done string
	// apply changes an object, or says why it does not.
	apply func(*v1beta1.MachineDeployment) error
	// ask does the same for a MachineSet; nil if the verb takes none.
	ask func(context.Context, client.Client, *machinev1beta1.MachineSet) error
}

func (c *change) register(command *cobra.Command) *cobra.Command {
	c.targets.register(command)
	c.printing.register(command)
	command.Flags().StringVar(&c.manager, "field-manager", "kubectl-machine-rollout",
		"Manager of the fields that are changed.")
	_ = command.RegisterFlagCompletionFunc("field-manager", cobra.NoFileCompletions)
	command.RunE = c.run
	return command
}

func (c *change) run(command *cobra.Command, arguments []string) error {
	live, found, err := c.find(command, arguments, c.ask != nil)
	if err != nil {
		return err
	}
	var failed []error
	for i := range found {
		if err := c.patch(command, live, found[i]); err != nil {
			failed = append(failed, err)
			continue
		}
		if err := c.print(command, found[i], c.done); err != nil {
			failed = append(failed, err)
		}
	}
	return joined(failed)
}

func (c *change) patch(command *cobra.Command, live client.Client, object client.Object) error {
	before, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("%T is no object", object)
	}
	ctx, patch := command.Context(), client.MergeFrom(before)
	var err error
	name := resource
	switch one := object.(type) {
	case *v1beta1.MachineDeployment:
		err = c.apply(one)
	case *machinev1beta1.MachineSet:
		name, err = setResource, c.ask(ctx, live, one)
		patch = client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	}
	if err != nil {
		return fmt.Errorf("%s %q %w", name, object.GetName(), err)
	}
	if err := live.Patch(ctx, object, patch, client.FieldOwner(c.manager)); err != nil {
		return fmt.Errorf("failed to patch: %w", err)
	}
	return nil
}

func newPause() *cobra.Command {
	c := &change{done: "paused", apply: func(d *v1beta1.MachineDeployment) error {
		if d.Spec.Paused {
			return errors.New("is already paused")
		}
		d.Spec.Paused = true
		return nil
	}}
	return c.register(&cobra.Command{
		Use:   "pause (TYPE NAME | TYPE/NAME)",
		Short: "Stop a rollout where it is",
		Long: `Stop a rollout where it is: Machines that are being changed or replaced are finished, and no further ones
are touched.`,
		Example: `  # Stop a rollout
  kubectl machine rollout pause machinedeployment/workers`,
	})
}

func newResume() *cobra.Command {
	c := &change{done: "resumed", apply: func(d *v1beta1.MachineDeployment) error {
		if !d.Spec.Paused {
			return errors.New("is not paused")
		}
		d.Spec.Paused = false
		return nil
	}}
	return c.register(&cobra.Command{
		Use:   "resume (TYPE NAME | TYPE/NAME)",
		Short: "Resume a paused rollout",
		Long:  `Resume a paused rollout, to the template that the MachineDeployment has now.`,
		Example: `  # Go on with a rollout
  kubectl machine rollout resume machinedeployment/workers`,
	})
}

func newRestart() *cobra.Command {
	c := &change{done: "restarted", ask: restartSet, apply: func(d *v1beta1.MachineDeployment) error {
		now := metav1.Now().Rfc3339Copy()
		switch {
		case d.Spec.Paused:
			return errors.New("can't restart paused machinedeployment (run rollout resume first)")
		case d.Spec.RestartedAt.Equal(&now):
			return errors.New("was restarted within the past second; wait before you restart it again")
		}
		d.Spec.RestartedAt = &now
		return nil
	}}
	return c.register(&cobra.Command{
		Use:   "restart (TYPE NAME | TYPE/NAME)",
		Short: "Replace all Machines",
		Long: `Replace all Machines of a MachineDeployment, though its template stays the same. The strategy's bounds hold.
It sets spec.restartedAt. Those of a MachineSet are replaced one at a time, each once a new Machine is available.`,
		Example: `  # Replace the Machines of a MachineDeployment
  kubectl machine rollout restart machinedeployment/workers

  # Those of all MachineDeployments with a label
  kubectl machine rollout restart machinedeployment -l pool=workers

  # Replace the Machines of a MachineSet
  kubectl machine rollout restart machineset/workers`,
	})
}
