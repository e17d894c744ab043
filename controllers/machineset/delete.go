package machineset

import (
	"context"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
)

// deleteMachines deletes the surplus Machines.
type deleteMachines struct {
	client   client.Client
	inFlight *inFlight
	clock    clock.PassiveClock
	shuffle  func(n int, swap func(i, j int))
}

// Reconcile implements pipeline.Step.
func (d *deleteMachines) Reconcile(ctx context.Context, s *scope) (bool, error) {
	surplus := min(s.surplus(), maxPerReconcile)
	if surplus <= 0 {
		return true, nil
	}
	selection := selection{policy: s.set.Spec.DeletePolicy, now: d.clock.Now(), shuffle: d.shuffle}
	victims, err := selection.choose(s.replicas, surplus)
	if err != nil {
		return false, fmt.Errorf("choosing Machines to delete: %w", err)
	}
	log.FromContext(ctx).Info("Deleting Machines", "surplus", s.surplus(), "now", len(victims))
	err = parallel(ctx, len(victims), maxConcurrentRequests,
		func(ctx context.Context, i int) error { return d.delete(ctx, s.set, victims[i]) })
	if err != nil {
		return false, fmt.Errorf("deleting Machines: %w", err)
	}
	return true, nil
}

// delete deletes the Machine by UID, so that another one of the same name is not. One without a Node is
// marked before, because limitCreation counts those that something else deletes.
func (d *deleteMachines) delete(ctx context.Context, set *machinev1beta1.MachineSet,
	machine *machinev1beta1.Machine) error {
	d.inFlight.deleting(set, machine.UID)
	if machine.Status.NodeRef == nil && !machineapi.MarkedForDeletion(machine) {
		marked := machine.DeepCopy()
		metav1.SetMetaDataAnnotation(&marked.ObjectMeta, machineapi.DeleteAnnotation, "scale-down")
		if err := d.client.Patch(ctx, marked, client.MergeFrom(machine)); client.IgnoreNotFound(err) != nil {
			log.FromContext(ctx).Error(err, "Cannot mark a Machine before its deletion", "Machine", machine.Name)
		}
	}
	target := &machinev1beta1.Machine{}
	target.SetNamespace(machine.Namespace)
	target.SetName(machine.Name)
	err := d.client.Delete(ctx, target, client.Preconditions{UID: &machine.UID})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // already deleted; the cache will show it
	}
	if refused(err) {
		d.inFlight.notDeleted(set, machine.UID)
	}
	return err
}
