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
)

// farewell begins the deletion, and ends the pass for a Machine that is no longer ours to hold.
type farewell struct{}

// Reconcile implements step.
func (f *farewell) Reconcile(_ context.Context, s *scope) (bool, error) {
	setPhase(s.machine, machinev1beta1.PhaseDeleting)
	return controllerutil.ContainsFinalizer(s.machine, machinev1beta1.MachineFinalizer), nil
}

// destruction has the instance removed and goes on once it is gone.
type destruction struct {
	actuator actuators.Actuator
	clock    clock.PassiveClock
}

// Reconcile implements step.
func (d *destruction) Reconcile(ctx context.Context, s *scope) (bool, error) {
	deleteErr := d.actuator.Delete(ctx, s.machine)
	if uncertain, ok := actuators.AsUncertain(deleteErr); ok {
		s.doubt(uncertain, d.clock.Now())
		return false, nil
	}
	if deleteErr != nil && !d.ignorable(s.machine, deleteErr) {
		return false, d.failed(s, deleteErr)
	}
	exists, err := d.actuator.Exists(ctx, s.machine)
	now := d.clock.Now()
	if uncertain, ok := actuators.AsUncertain(err); ok {
		s.doubt(uncertain, now)
		return false, nil
	}
	if err != nil {
		setCondition(s.machine, existenceUnknown(err), now)
		return false, fmt.Errorf("checking whether the instance still exists: %w", err)
	}
	if !exists {
		return true, nil
	}
	setCondition(s.machine, instanceExists(corev1.ConditionTrue, "", ""), now)
	if deleteErr != nil { // there is an instance after all, and nobody knows how to remove it
		faultOf(deleteErr, machinev1beta1.DeleteMachineError).show(s.machine, now)
	}
	s.RequeueAfter(lookAgainAfter)
	return false, nil
}

// ignorable reports whether err stands in nobody's way: what cannot be understood and never had an instance may go. A providerID or a Node
// shows that it had one, whoever made it.
func (d *destruction) ignorable(machine *machinev1beta1.Machine, err error) bool {
	return actuators.IsInvalidConfiguration(err) && !provisioned(machine) && machine.Status.NodeRef == nil
}

func (d *destruction) failed(s *scope, err error) error {
	if requeue, ok := actuators.AsRequeueAfter(err); ok {
		s.wait(requeue)
		return nil
	}
	f := faultOf(err, machinev1beta1.DeleteMachineError)
	f.show(s.machine, d.clock.Now())
	if err := f.retry(s); err != nil {
		return fmt.Errorf("deleting the instance: %w", err)
	}
	return nil
}

// nodeRemoval removes the Node of an instance that is gone. Its UID is compared: a Node made again under the same name stays.
type nodeRemoval struct {
	client client.Client
}

// Reconcile implements step.
func (n *nodeRemoval) Reconcile(ctx context.Context, s *scope) (bool, error) {
	ref := s.machine.Status.NodeRef
	if ref == nil {
		return true, nil
	}
	var options []client.DeleteOption
	if ref.UID != "" {
		options = append(options, client.Preconditions{UID: &ref.UID})
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: ref.Name}}
	if err := n.client.Delete(ctx, node, options...); !goneOrOther(err) {
		return false, fmt.Errorf("deleting Node %s: %w", ref.Name, err)
	}
	return true, nil
}
