package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
)

// strategies are those of a MachineSet's rollout.
var strategies = []string{string(v1beta1.InPlaceOrReplace), string(v1beta1.InPlace), string(v1beta1.RollingUpdate)}

func newUpdate() *cobra.Command {
	var strategy string
	c := &change{done: "update requested", apply: func(*v1beta1.MachineDeployment) error {
		return errors.New("rolls out by itself once its template changes")
	}}
	c.ask = func(_ context.Context, _ client.Client, set *machinev1beta1.MachineSet) error {
		if !slices.Contains(strategies, strategy) {
			return fmt.Errorf("cannot be updated by %q: --strategy must be one of %q", strategy, strategies)
		}
		return ask(set, strategy, "")
	}
	command := c.register(&cobra.Command{
		Use:   "update (TYPE NAME | TYPE/NAME)",
		Short: "Bring the Machines of a MachineSet to its template",
		Long: `Bring the Machines of a MachineSet without a MachineDeployment to its template, one at a time: in place if the
engine's plan says that the instance stays, else by a new Machine. The manager does it, also when nobody waits. The
annotation machine-iac.io/rollout asks for it; remove it to stop.`,
		Example: `  # Update, and wait
  kubectl machine rollout update machineset/workers
  kubectl machine rollout status machineset/workers --timeout=1h

  # Replace no Machine
  kubectl machine rollout update machineset/workers --strategy=InPlace

  # Stop
  kubectl annotate machineset.machine.openshift.io workers machine-iac.io/rollout-`,
	})
	command.ValidArgsFunction = c.Complete(namesOf("MachineSet"))
	command.Flags().StringVar(&strategy, "strategy", string(v1beta1.InPlaceOrReplace),
		"How Machines change: InPlaceOrReplace, InPlace for no new Machine, RollingUpdate for new Machines only.")
	_ = command.RegisterFlagCompletionFunc("strategy",
		cobra.FixedCompletions(strategies, cobra.ShellCompDirectiveNoFileComp))
	return command
}

// restartSet asks for new Machines in the place of those that there are.
func restartSet(ctx context.Context, live client.Client, set *machinev1beta1.MachineSet) error {
	selector, err := metav1.LabelSelectorAsSelector(&set.Spec.Selector)
	if err != nil {
		return fmt.Errorf("has a selector that cannot be read: %w", err)
	}
	list := &machinev1beta1.MachineList{}
	if err := live.List(ctx, list, client.InNamespace(set.Namespace),
		client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return fmt.Errorf("cannot be restarted: %w", err)
	}
	var newest metav1.Time
	for i := range list.Items {
		if machine := &list.Items[i]; metav1.IsControlledBy(machine, set) && newest.Before(&machine.CreationTimestamp) {
			newest = machine.CreationTimestamp
		}
	}
	if newest.IsZero() {
		return errors.New("has no Machines to replace")
	}
	return ask(set, string(v1beta1.RollingUpdate), newest.UTC().Format(time.RFC3339))
}

// ask writes what the manager reads.
func ask(set *machinev1beta1.MachineSet, strategy, until string) error {
	if owner := metav1.GetControllerOfNoCopy(set); owner != nil {
		return fmt.Errorf("belongs to %s %s; change or restart that", owner.Kind, owner.Name)
	}
	metav1.SetMetaDataAnnotation(&set.ObjectMeta, v1beta1.RolloutAnnotation, strategy)
	delete(set.Annotations, v1beta1.ReplaceUntilAnnotation)
	if until != "" {
		metav1.SetMetaDataAnnotation(&set.ObjectMeta, v1beta1.ReplaceUntilAnnotation, until)
	}
	return nil
}

// setStatus describes the rollout of a MachineSet as [statusOf] does.
func setStatus(set *machinev1beta1.MachineSet) (line, note string, done bool, err error) {
	if owner := metav1.GetControllerOfNoCopy(set); owner != nil {
		return "", "", false, fmt.Errorf("machineset %q belongs to %s %s; name that", set.Name, owner.Kind, owner.Name)
	}
	var condition, inSync machinev1beta1.Condition
	for _, one := range set.Status.Conditions {
		switch one.Type {
		case v1beta1.ConditionRolledOut:
			condition = one
		case v1beta1.ConditionTemplateInSync:
			inSync = one
		}
	}
	edited := inSync.Status == corev1.ConditionFalse && inSync.LastTransitionTime.After(condition.LastTransitionTime.Time)
	asked := set.Annotations[v1beta1.RolloutAnnotation] != ""
	switch {
	case asked && condition.Reason == v1beta1.ReasonStopped:
		line = fmt.Sprintf("Waiting for machineset %q rollout to finish: it has stopped...\n", set.Name)
		return line, fmt.Sprintf("note: %s\n", condition.Message), false, nil
	case asked && condition.Reason == v1beta1.ReasonRolloutInProgress:
		line = fmt.Sprintf("Waiting for machineset %q rollout to finish: %s...\n", set.Name, condition.Message)
		return line, "", false, nil
	case asked:
		return fmt.Sprintf("Waiting for machineset %q rollout to be observed...\n", set.Name), "", false, nil
	case condition.Reason == v1beta1.ReasonRolledOut && !edited:
		return fmt.Sprintf("machineset %q successfully rolled out\n", set.Name), "", true, nil
	case condition.Reason == v1beta1.ReasonReplacementNeeded && !edited:
		return "", "", false, fmt.Errorf("machineset %q is rolled out in place only: %s", set.Name, condition.Message)
	default:
		return "", "", false, fmt.Errorf("machineset %q has no rollout; request one with 'kubectl machine rollout update'",
			set.Name)
	}
}
