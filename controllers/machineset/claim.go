package machineset

import (
	"context"
	"fmt"
	"slices"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
)

// claimMachines finds the Machines that count as replicas. It adopts matching Machines without a
// controller, and releases Machines of the MachineSet that no longer match. A Machine of another
// controller is never changed. After a conflict the number of replicas is not known and the
// reconcile ends.
type claimMachines struct {
	client client.Client
	reader client.Reader
}

// Reconcile implements pipeline.Step.
func (c *claimMachines) Reconcile(ctx context.Context, s *scope) (bool, error) {
	list := &machinev1beta1.MachineList{}
	// Nothing below changes a Machine in place, so no copies are needed.
	if err := c.client.List(ctx, list, client.InNamespace(s.set.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("listing Machines: %w", err)
	}
	s.machines = pointers(list.Items)
	sorted := sortClaims(s.set.UID, s.selector, s.machines)
	s.replicas = sorted.replicas
	for _, machine := range sorted.release {
		if err := c.release(ctx, s, machine); err != nil {
			return false, err
		}
	}
	if len(sorted.adopt) > 0 {
		if err := c.adoptAll(ctx, s, sorted.adopt); err != nil {
			return false, err
		}
	}
	slices.SortFunc(s.replicas, func(x, y *machinev1beta1.Machine) int { return strings.Compare(x.Name, y.Name) })
	return !s.stale, nil
}

type claims struct {
	replicas, adopt, release []*machinev1beta1.Machine
}

// sortClaims sorts Machines by what a MachineSet with this UID and selector does with them. Those
// that are being deleted are ignored.
func sortClaims(set types.UID, selector labels.Selector, machines []*machinev1beta1.Machine) claims {
	var out claims
	for _, machine := range machines {
		if !machine.DeletionTimestamp.IsZero() {
			continue
		}
		owner := metav1.GetControllerOfNoCopy(machine)
		matches := selector.Matches(labels.Set(machine.Labels))
		switch {
		case owner == nil && matches:
			out.adopt = append(out.adopt, machine)
		case owner == nil || owner.UID != set:
			// without a controller and not matching, or another controller's
		case matches:
			out.replicas = append(out.replicas, machine)
		default:
			out.release = append(out.release, machine)
		}
	}
	return out
}

// adoptAll adopts machines, after the API server has confirmed that the MachineSet still exists.
func (c *claimMachines) adoptAll(ctx context.Context, s *scope, machines []*machinev1beta1.Machine) error {
	live, err := liveSet(ctx, c.reader, s.set)
	if err != nil || live == nil {
		s.stale = err == nil
		return err
	}
	for _, machine := range machines {
		adopted := machine.DeepCopy()
		adopted.OwnerReferences = append(adopted.OwnerReferences, ownerReference(s.set))
		done, err := c.patch(ctx, s, machine, adopted)
		if err != nil {
			return fmt.Errorf("adopting Machine %s: %w", machine.Name, err)
		}
		if done {
			log.FromContext(ctx).Info("Adopted a Machine", "Machine", machine.Name)
			s.replicas = append(s.replicas, adopted)
		}
	}
	return nil
}

func (c *claimMachines) release(ctx context.Context, s *scope, machine *machinev1beta1.Machine) error {
	released := machine.DeepCopy()
	ours := func(r metav1.OwnerReference) bool { return r.UID == s.set.UID }
	released.OwnerReferences = slices.DeleteFunc(released.OwnerReferences, ours)
	done, err := c.patch(ctx, s, machine, released)
	if err != nil {
		return fmt.Errorf("releasing Machine %s: %w", machine.Name, err)
	}
	if done {
		log.FromContext(ctx).Info("Released a Machine: its labels no longer match", "Machine", machine.Name)
	}
	return nil
}

// patch writes owner references unless the Machine has changed since it was read. It returns false
// after a conflict; the change that caused it triggers another reconcile.
func (c *claimMachines) patch(ctx context.Context, s *scope, before, after *machinev1beta1.Machine) (bool, error) {
	err := c.client.Patch(ctx, after, pipeline.IfUnchanged(before))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		s.stale = true
		return false, nil
	}
	return err == nil, err
}

func ownerReference(set *machinev1beta1.MachineSet) metav1.OwnerReference {
	return *metav1.NewControllerRef(set, machinev1beta1.GroupVersion.WithKind("MachineSet"))
}
