package rollout

import (
	"context"
	"fmt"
	"slices"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
)

// Values of --dry-run.
const (
	dryRunNone   = "none"
	dryRunClient = "client"
	dryRunServer = "server"
)

type undo struct {
	targets
	printing
	revision int64
	dryRun   string
}

func newUndo() *cobra.Command {
	var u undo
	command := &cobra.Command{
		Use:   "undo (TYPE NAME | TYPE/NAME)",
		Short: "Go back to an earlier revision",
		Long: `Go back to an earlier revision: its providerSpec, from its MachineSet, becomes that of the MachineDeployment,
and rolls out as any other change. This also works in the middle of a rollout.`,
		Example: `  # Go back to the revision before
  kubectl machine rollout undo machinedeployment/workers

  # Go back to revision 3
  kubectl machine rollout undo machinedeployment/workers --to-revision=3

  # Show its template only
  kubectl machine rollout undo machinedeployment/workers --to-revision=3 --dry-run=client`,
		RunE: u.run,
	}
	u.targets.register(command)
	u.printing.register(command)
	flags := command.Flags()
	flags.Int64Var(&u.revision, "to-revision", 0, "Revision to go back to; 0 is the one before the latest.")
	flags.StringVar(&u.dryRun, "dry-run", dryRunNone,
		"none; server for a request that changes nothing; client to print the template without one.")
	_ = command.RegisterFlagCompletionFunc("to-revision", cobra.NoFileCompletions)
	_ = command.RegisterFlagCompletionFunc("dry-run",
		cobra.FixedCompletions([]string{dryRunNone, dryRunServer, dryRunClient}, cobra.ShellCompDirectiveNoFileComp))
	return command
}

func (u *undo) run(command *cobra.Command, arguments []string) error {
	if !slices.Contains([]string{dryRunNone, dryRunServer, dryRunClient}, u.dryRun) {
		return fmt.Errorf(`invalid dry-run value (%s): must be "none", "server" or "client"`, u.dryRun)
	}
	live, found, err := u.find(command, arguments, false)
	if err != nil {
		return err
	}
	var failed []error
	for _, d := range deployments(found) {
		if _, applied := d.Annotations[corev1.LastAppliedConfigAnnotation]; applied {
			fmt.Fprintf(command.ErrOrStderr(), "Warning: machinedeployment %q is managed by 'kubectl apply'; "+
				"apply the earlier manifest instead, or the next apply undoes this\n", d.Name)
		}
		done, err := u.undo(command.Context(), live, d)
		if err == nil {
			err = u.print(command, d, done)
		}
		if err != nil {
			failed = append(failed, err)
		}
	}
	return joined(failed)
}

// undo returns what was done. The read and the write are one transaction, so that no other change is lost.
func (u *undo) undo(ctx context.Context, live client.Client, d *v1beta1.MachineDeployment) (done string, err error) {
	options := []client.PatchOption{}
	if u.dryRun == dryRunServer {
		options = append(options, client.DryRunAll)
	}
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := live.Get(ctx, client.ObjectKeyFromObject(d), d); err != nil {
			return err
		}
		sets, err := revisions(ctx, live, d)
		if err != nil {
			return err
		}
		set, err := chosen(sets, d.Name, u.revision)
		if err != nil {
			return err
		}
		before := d.DeepCopy()
		switch {
		case u.dryRun == dryRunClient:
			done, err = templateText(set)
			return err
		case d.Spec.Paused:
			return fmt.Errorf("you cannot rollback a paused machinedeployment; resume it first with "+
				"'kubectl machine rollout resume machinedeployment/%s' and try again", d.Name)
		case !takeRevision(d, set):
			done = fmt.Sprintf("skipped rollback (current template already matches revision %d)", u.revision)
			return nil
		}
		done = "rolled back"
		return live.Patch(ctx, d, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), options...)
	})
	switch u.dryRun {
	case dryRunClient:
		done += " (dry run)"
	case dryRunServer:
		done += " (server dry run)"
	}
	return done, err
}

// chosen returns the MachineSet of a revision, of the one before the latest for 0.
func chosen(sets map[int64]*machinev1beta1.MachineSet, name string,
	revision int64) (*machinev1beta1.MachineSet, error) {
	if revision != 0 {
		if sets[revision] == nil {
			return nil, fmt.Errorf("unable to find specified revision %d in history", revision)
		}
		return sets[revision], nil
	}
	numbers := sorted(sets)
	if len(numbers) < 2 {
		return nil, fmt.Errorf("no rollout history found for machinedeployment %q", name)
	}
	return sets[numbers[len(numbers)-2]], nil
}

// takeRevision gives the MachineDeployment what makes up the revision of a MachineSet, and reports whether that is a
// change. Labels, taints and hooks are of no revision: all MachineSets have the current ones.
func takeRevision(d *v1beta1.MachineDeployment, set *machinev1beta1.MachineSet) bool {
	before := d.Spec.DeepCopy()
	d.Spec.Template.Spec.ProviderSpec = *set.Spec.Template.Spec.ProviderSpec.DeepCopy()
	d.Spec.RestartedAt = nil
	if at, err := time.Parse(time.RFC3339, set.Annotations[v1beta1.RestartedAtAnnotation]); err == nil {
		d.Spec.RestartedAt = ptr.To(metav1.NewTime(at))
	}
	delete(d.Annotations, v1beta1.ChangeCauseAnnotation)
	if cause := set.Annotations[v1beta1.ChangeCauseAnnotation]; cause != "" {
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, v1beta1.ChangeCauseAnnotation, cause)
	}
	return !equality.Semantic.DeepEqual(before, &d.Spec)
}
