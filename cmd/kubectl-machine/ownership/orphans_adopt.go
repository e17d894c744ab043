package ownership

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/backup"
	"github.com/machine-iac/machine-iac-operator/internal/inspect"
	"github.com/machine-iac/machine-iac-operator/internal/inspect/print"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// withdrawTimeout limits the removal of a Machine that was created in vain, even after the command
// is interrupted.
const withdrawTimeout = 30 * time.Second

var errNameTaken = errors.New("there is already a Machine")

// runAdopt gives a Machine to an orphan.
func (o *orphanOptions) runAdopt(command *cobra.Command, names []string) error {
	if len(names) != 1 {
		return fmt.Errorf("--adopt-as %s gives one orphan a Machine: name the orphan, as in 'kubectl machine orphans NAME --adopt-as %s'", o.adoptAs, o.adoptAs)
	}
	cluster, err := o.Cluster()
	if err != nil {
		return err
	}
	found, err := oneOrphan(command.Context(), cluster, names[0])
	if err != nil {
		return err
	}
	live, _, err := o.Connect()
	if err != nil {
		return err
	}
	a := orphanAdoption{options: o, live: live, orphan: found, name: o.adoptAs}
	switch {
	case found.Kind == inspect.OrphanUnsaved:
		return fmt.Errorf("%s is a state that could not be saved, so no Machine can take it over; see docs/troubleshooting.md",
			found.Secret)
	case found.Claimed != "":
		return fmt.Errorf("%s is not given to %s: %s; import its state for that one: docs/backup.md", found.Name(), o.adoptAs,
			found.Claimed)
	case found.Kind == inspect.OrphanInstance:
		return a.adoptInstance(command)
	}
	return a.adoptState(command)
}

// orphanAdoption gives one orphan a Machine.
type orphanAdoption struct {
	options *orphanOptions
	live    client.Client
	orphan  *inspect.Orphan
	// name is what the Machine is called.
	name string
	// made is the Machine if it was created; nil if it existed.
	made *machinev1beta1.Machine
}

// create creates the Machine, like those of a MachineSet or like the one that an instance was
// listed with.
func (a *orphanAdoption) create(ctx context.Context, asked lifecycle.Adoption) error {
	machine, err := a.machine(ctx, asked)
	if err != nil {
		return err
	}
	err = a.live.Create(ctx, machine)
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("%w %s; name another, or set its spec.providerID and adopt it with 'kubectl machine adopt'; nothing was changed", errNameTaken, a.name)
	}
	if err != nil {
		return fmt.Errorf("creating the Machine %s: %w", a.name, err)
	}
	a.made = machine
	return nil
}

// createFreely creates the Machine under a free name.
func (a *orphanAdoption) createFreely(ctx context.Context) (err error) {
	for _, a.name = range lifecycle.OrphanMachineNames(a.orphan.Instance, a.orphan.ProviderID) {
		if err = a.create(ctx, lifecycle.AdoptionPlan); !errors.Is(err, errNameTaken) {
			break
		}
	}
	return err
}

func (a *orphanAdoption) machine(ctx context.Context, asked lifecycle.Adoption) (*machinev1beta1.Machine, error) {
	namespace, now := a.orphan.Namespace, time.Now()
	if name := cmp.Or(a.options.machineSet, a.orphan.MachineSet); name != "" {
		set := &machinev1beta1.MachineSet{}
		if err := a.live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, set); err != nil {
			return nil, fmt.Errorf("reading the MachineSet that %s is to be like: %w", a.name, err)
		}
		if err := a.hasRoom(ctx, set); err != nil {
			return nil, err
		}
		return lifecycle.MachineOfSet(a.name, a.orphan.ProviderID, set, asked, now), nil
	}
	if a.orphan.Kind == inspect.OrphanState {
		return nil,
			fmt.Errorf("there is no Machine %s, and the state does not say which MachineSet its Machine belonged to: name one with --machine-set, or create the Machine "+
				"from its manifest with the annotation %s: %s, which keeps it from creating an instance, and repeat the command",
				a.name, lifecycle.AdoptionAnnotation, lifecycle.AdoptionPlan)
	}
	like := &machinev1beta1.Machine{}
	err := a.live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: a.orphan.ListedBy}, like)
	if a.orphan.ListedBy == "" || apierrors.IsNotFound(err) {
		return nil,
			fmt.Errorf("the Machine %q, with whose providerSpec the instance was listed, is gone: name a MachineSet of its place with --machine-set, or wait for the next inventory", a.orphan.ListedBy)
	}
	if err != nil {
		return nil, err
	}
	return lifecycle.MachineForOrphan(a.name, a.orphan.ProviderID, like, asked, now), nil
}

// hasRoom rejects a MachineSet that has all its replicas: it would delete one of them.
func (a *orphanAdoption) hasRoom(ctx context.Context, set *machinev1beta1.MachineSet) error {
	selector, err := metav1.LabelSelectorAsSelector(&set.Spec.Selector)
	if err != nil {
		return fmt.Errorf("the selector of the MachineSet %s: %w", set.Name, err)
	}
	replicas := 1
	if set.Spec.Replicas != nil {
		replicas = int(*set.Spec.Replicas)
	}
	machines := &machinev1beta1.MachineList{}
	if err := a.live.List(ctx, machines, client.InNamespace(set.Namespace),
		client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return fmt.Errorf("listing the Machines of %s: %w", set.Name, err)
	}
	has := 0
	for i := range machines.Items {
		if machines.Items[i].DeletionTimestamp.IsZero() {
			has++
		}
	}
	if has >= replicas && selector.Matches(labels.Set(set.Spec.Template.Labels)) {
		return fmt.Errorf("the MachineSet %s has %d of %d Machines, and would delete one for %s: scale it to %d first; nothing was changed", set.Name, has, replicas, a.name, has+1)
	}
	return nil
}

// adoptInstance creates a Machine that adopts the instance, and waits until it has.
func (a *orphanAdoption) adoptInstance(command *cobra.Command) error {
	ctx := command.Context()
	if err := a.create(ctx, lifecycle.AdoptionAdopt); err != nil {
		return err
	}
	if a.options.wait <= 0 {
		fmt.Fprintf(command.OutOrStdout(), "machine/%s is created, and its adoption of %s is requested\n", a.name,
			a.orphan.ProviderID)
		return nil
	}
	found, err := a.waitFor(ctx, func(f *inspect.MachineAdoption) bool {
		return f.Result == inspect.AdoptionDone || f.Result == inspect.AdoptionRefused
	})
	switch {
	case err != nil:
		return fmt.Errorf("the manager has not adopted %s within %s: %w; it does once it runs; to withdraw the request, and not by a delete, with which the instance would be destroyed: "+
			"kubectl annotate machine -n %s %s %s=%s --overwrite", a.orphan.ProviderID, a.options.wait, err, a.orphan.Namespace,
			a.name, lifecycle.AdoptionAnnotation, lifecycle.AdoptionPlan)
	case found.Result == inspect.AdoptionRefused:
		return errors.Join(fmt.Errorf("%s is not adopted: %s", a.orphan.ProviderID, found.Message), a.withdraw(ctx))
	}
	fmt.Fprintf(command.OutOrStdout(), "machine/%s has adopted %s\n", a.name, a.orphan.ProviderID)
	return nil
}

// destroyInstance creates a Machine that adopts the instance, shows what that would import, and
// deletes the Machine after a confirmation.
func (a *orphanAdoption) destroyInstance(command *cobra.Command) error {
	ctx, out := command.Context(), command.ErrOrStderr()
	if a.options.wait <= 0 {
		return errors.New("an instance is adopted before it is destroyed, to find all that belongs to it: leave out --wait 0")
	}
	fmt.Fprintf(out,
		"The instance %s (%s) belongs to no Machine and no state here: %s. Its adoption by a Machine is planned, to find what belongs to it.\n",
		print.OneLine(a.orphan.Instance), print.OneLine(a.orphan.ProviderID), print.OneLine(a.orphan.Whose))
	if err := a.createFreely(ctx); err != nil {
		return err
	}
	found, err := a.waitFor(ctx, func(f *inspect.MachineAdoption) bool { return f.Planned != nil })
	switch {
	case err != nil:
		err = fmt.Errorf("the manager has not planned the adoption of %s within %s: %w; nothing was changed",
			a.orphan.ProviderID, a.options.wait, err)
	case found.Result == inspect.AdoptionRefused:
		err = fmt.Errorf("%s cannot be adopted, and so is not destroyed: %s; nothing was changed", a.orphan.ProviderID,
			found.Message)
	default:
		fmt.Fprintln(out, "A destroy would remove:")
		for _, imported := range found.Imports {
			fmt.Fprintln(out, "  "+print.OneLine(imported))
		}
		if !a.options.yes && !confirmed(command, "Destroy this? Only 'yes' is taken for it: ") {
			err = errors.New("it was not confirmed; nothing was changed")
		}
	}
	if err != nil {
		return errors.Join(err, a.withdraw(ctx))
	}
	err = annotate(ctx, a.live, a.made, map[string]string{lifecycle.AdoptionAnnotation: string(lifecycle.AdoptionAdopt)})
	if err == nil {
		err = a.delete(ctx)
	}
	if err != nil {
		return errors.Join(err, a.withdraw(ctx))
	}
	if _, err := a.waitFor(ctx, func(*inspect.MachineAdoption) bool { return false }); err != nil &&
		!apierrors.IsNotFound(err) {
		return fmt.Errorf("%s was not destroyed within %s: %w; the Machine %s is being deleted, and its conditions say what it waits for", a.orphan.ProviderID, a.options.wait, err, a.name)
	}
	fmt.Fprintf(command.OutOrStdout(), "%s is destroyed\n", a.orphan.Name())
	return nil
}

// waitFor reads the Machine until its adoption is as wanted.
func (a *orphanAdoption) waitFor(ctx context.Context,
	wanted func(*inspect.MachineAdoption) bool) (found *inspect.MachineAdoption, err error) {
	err = wait.PollUntilContextTimeout(ctx, adoptInterval, a.options.wait, true, func(ctx context.Context) (bool, error) {
		now := &machinev1beta1.Machine{}
		if err := a.live.Get(ctx, client.ObjectKeyFromObject(a.made), now); err != nil {
			return false, err
		}
		found = inspect.AdoptionOf(now)
		return found != nil && wanted(found), nil
	})
	return found, err
}

func (a *orphanAdoption) delete(ctx context.Context) error {
	uid := a.made.UID
	if err := a.live.Delete(ctx, a.made.DeepCopy(), client.Preconditions{UID: &uid}); err != nil {
		return fmt.Errorf("deleting the Machine %s: %w", a.name, err)
	}
	return nil
}

// withdraw removes the created Machine without its instance. The manager would adopt, and then
// destroy, what a deleted Machine is to adopt. So withdraw first cancels the request, and then
// removes the Machine immediately if it is unchanged. A Machine that has begun to adopt the
// instance stays.
func (a *orphanAdoption) withdraw(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawTimeout)
	defer cancel()
	var failed error
	err := wait.PollUntilContextCancel(ctx, adoptInterval, true, func(ctx context.Context) (bool, error) {
		now := &machinev1beta1.Machine{}
		if failed = a.live.Get(ctx, client.ObjectKeyFromObject(a.made), now); failed != nil {
			return apierrors.IsNotFound(failed), nil
		}
		if _, begun := now.Annotations[record.WitnessAnnotation]; begun || now.UID != a.made.UID {
			return true, fmt.Errorf("the Machine %s has begun to adopt the instance, and stays; look at its conditions", a.name)
		}
		failed = a.remove(ctx, now)
		return failed == nil, nil // somebody has written it meanwhile
	})
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("the Machine %s, which was made for this, is still there: %w; set its annotation %s to %s, delete it, and remove its finalizer, so that the instance stays as it was",
			a.name, cmp.Or(failed, err), lifecycle.AdoptionAnnotation, lifecycle.AdoptionPlan)
	}
	return err
}

// remove removes an unchanged Machine, without the finalizer that waits for its instance.
func (a *orphanAdoption) remove(ctx context.Context, now *machinev1beta1.Machine) error {
	before := now.DeepCopy()
	metav1.SetMetaDataAnnotation(&now.ObjectMeta, lifecycle.AdoptionAnnotation, string(lifecycle.AdoptionPlan))
	now.Finalizers = nil
	if err := a.live.Patch(ctx, now, client.MergeFromWithOptions(before,
		client.MergeFromWithOptimisticLock{})); err != nil {
		return client.IgnoreNotFound(err)
	}
	return client.IgnoreNotFound(a.live.Delete(ctx, now,
		client.Preconditions{UID: &now.UID, ResourceVersion: &now.ResourceVersion}))
}

// adoptState gives a state to the Machine of its name, which it creates if missing.
func (a *orphanAdoption) adoptState(command *cobra.Command) error {
	ctx, uid := command.Context(), a.orphan.UID
	if a.orphan.Machine != "" && a.orphan.Machine != a.name {
		return fmt.Errorf("the state is of a Machine called %s: the name is an input of its module, so the instance would be replaced; write --adopt-as %s", a.orphan.Machine, a.orphan.Machine)
	}
	err := a.live.Get(ctx, client.ObjectKey{Namespace: a.orphan.Namespace, Name: a.name}, &machinev1beta1.Machine{})
	if apierrors.IsNotFound(err) {
		err = a.create(ctx, lifecycle.AdoptionPlan)
	}
	if err != nil {
		return err
	}
	if err := a.move(ctx, uid); err != nil {
		if a.made != nil {
			err = errors.Join(err, a.withdraw(ctx))
		}
		return err
	}
	if a.made != nil { // nothing was created for it while it had no state
		patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"annotations":{%q:null,%q:null}}}`, a.made.UID,
			lifecycle.AdoptionAnnotation, lifecycle.AdoptionRequestedAnnotation)
		if err := a.live.Patch(ctx, a.made.DeepCopy(), client.RawPatch(types.MergePatchType, patch)); err != nil {
			return fmt.Errorf("the Machine %s has the state, and its annotation %s could not be removed: %w; remove it",
				a.name, lifecycle.AdoptionAnnotation, err)
		}
	}
	fmt.Fprintf(command.OutOrStdout(), "machine/%s has the state of the Machine with UID %s\n", a.name, uid)
	return nil
}

// move stores the state under the UID of the Machine, like an import of a backup.
func (a *orphanAdoption) move(ctx context.Context, uid types.UID) error {
	source, live, err := a.options.Source()
	if err != nil {
		return err
	}
	now := time.Now()
	kept, err := source.Collect(ctx, []state.Key{{Namespace: a.orphan.Namespace, Name: a.orphan.Secret}}, now)
	if err != nil {
		return err
	}
	if len(kept.States) == 0 {
		return fmt.Errorf("%s has no state to give: %s", a.orphan.Secret, strings.Join(kept.Notes, "; "))
	}
	target := &backup.Target{Source: *source, Client: live, Namespace: a.orphan.Namespace,
		Map: map[types.UID]string{uid: a.name}}
	items, err := target.Check(ctx, kept)
	if err == nil {
		err = target.Import(ctx, kept, items, now)
	}
	if err != nil {
		return err
	}
	if item := items[0]; item.Result != backup.Imported {
		return fmt.Errorf("the state is not given to the Machine %s: %s", a.name, item.Reason)
	}
	return nil
}
