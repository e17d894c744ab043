package machine

import (
	"context"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
)

// refuseForeign keeps the deletion from beginning while the actuator knows that it did not create
// the instance. The phase stays, and the Node is not drained. Delete says what to do, or begins
// what was requested.
type refuseForeign struct {
	actuator actuators.Actuator
	clock    clock.PassiveClock
}

// Reconcile implements pipeline.Step.
func (r *refuseForeign) Reconcile(ctx context.Context, s *scope) (bool, error) {
	if machineapi.Phase(s.machine) == machinev1beta1.PhaseDeleting ||
		!controllerutil.ContainsFinalizer(s.machine, machinev1beta1.MachineFinalizer) {
		return true, nil
	}
	_, err := r.actuator.Exists(ctx, s.machine)
	if uncertain, ok := actuators.AsUncertain(err); !ok || uncertain.Reason != actuators.ReasonNotAdopted {
		return true, nil // deleteInstance reports any other error
	}
	err = r.actuator.Delete(ctx, s.machine)
	if uncertain, ok := actuators.AsUncertain(err); ok {
		s.setUncertain(uncertain, r.clock.Now())
		return false, nil
	}
	if requeue, ok := actuators.AsRequeueAfter(err); ok {
		s.wait(requeue)
		return false, nil
	}
	if err != nil {
		newActuatorError(err, machinev1beta1.DeleteMachineError).setCondition(s.machine, r.clock.Now())
	}
	s.RequeueAfter(requeueInterval)
	return false, nil
}

// beginDelete sets the phase Deleting, and ends the reconcile of a Machine without this
// controller's finalizer.
type beginDelete struct{}

// Reconcile implements pipeline.Step.
func (f *beginDelete) Reconcile(_ context.Context, s *scope) (bool, error) {
	setPhase(s.machine, machinev1beta1.PhaseDeleting)
	return controllerutil.ContainsFinalizer(s.machine, machinev1beta1.MachineFinalizer), nil
}

// deleteInstance deletes the instance, and proceeds once it no longer exists.
type deleteInstance struct {
	actuator actuators.Actuator
	clock    clock.PassiveClock
}

// Reconcile implements pipeline.Step.
func (d *deleteInstance) Reconcile(ctx context.Context, s *scope) (bool, error) {
	deleteErr := d.actuator.Delete(ctx, s.machine)
	if uncertain, ok := actuators.AsUncertain(deleteErr); ok {
		s.setUncertain(uncertain, d.clock.Now())
		return false, nil
	}
	if deleteErr != nil && !d.ignorable(s.machine, deleteErr) {
		return false, d.failed(s, deleteErr)
	}
	exists, err := d.actuator.Exists(ctx, s.machine)
	now := d.clock.Now()
	if uncertain, ok := actuators.AsUncertain(err); ok {
		s.setUncertain(uncertain, now)
		return false, nil
	}
	if err != nil {
		setCondition(s.machine, instanceExistsUnknown(err), now)
		return false, fmt.Errorf("checking whether the instance still exists: %w", err)
	}
	if !exists {
		setCondition(s.machine, instanceExists(corev1.ConditionFalse, machinev1beta1.InstanceMissingReason,
			"Instance has been deleted"), now)
		return true, nil
	}
	setCondition(s.machine, instanceExists(corev1.ConditionTrue, "", ""), now)
	if deleteErr != nil { // an instance exists after all and cannot be deleted
		newActuatorError(deleteErr, machinev1beta1.DeleteMachineError).setCondition(s.machine, now)
	}
	s.RequeueAfter(requeueInterval)
	return false, nil
}

// ignorable reports whether the deletion may continue in spite of err: the configuration is invalid
// and no instance ever existed. A providerID or a Node proves that one did, regardless of who
// created it.
func (d *deleteInstance) ignorable(machine *machinev1beta1.Machine, err error) bool {
	return actuators.IsInvalidConfiguration(err) && !provisioned(machine) && machine.Status.NodeRef == nil
}

func (d *deleteInstance) failed(s *scope, err error) error {
	if requeue, ok := actuators.AsRequeueAfter(err); ok {
		s.wait(requeue)
		return nil
	}
	f := newActuatorError(err, machinev1beta1.DeleteMachineError)
	f.setCondition(s.machine, d.clock.Now())
	if err := f.retry(s); err != nil {
		return fmt.Errorf("deleting the instance: %w", err)
	}
	return nil
}

// deleteNode deletes the Node of a deleted instance. The UID is compared: another Node of the same
// name stays. A Node that was never linked is found by its providerID.
type deleteNode struct {
	client client.Client
	reader client.Reader
}

// Reconcile implements pipeline.Step.
func (n *deleteNode) Reconcile(ctx context.Context, s *scope) (bool, error) {
	ref := s.machine.Status.NodeRef
	if ref == nil {
		node, err := unlinkedNode(ctx, n.client, n.reader, s.machine)
		if err != nil || node == nil {
			return err == nil, err
		}
		ref = &corev1.ObjectReference{Name: node.Name, UID: node.UID}
	}
	var options []client.DeleteOption
	if ref.UID != "" {
		options = append(options, client.Preconditions{UID: &ref.UID})
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: ref.Name}}
	if err := n.client.Delete(ctx, node, options...); !deletedOrReplaced(err) {
		return false, fmt.Errorf("deleting Node %s: %w", ref.Name, err)
	}
	return true, nil
}
