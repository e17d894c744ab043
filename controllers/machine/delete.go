package machine

import (
	"context"
	"errors"
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

// terminateHook waits while somebody holds the instance with a preTerminate hook; taking the hook off wakes the Machine.
type terminateHook struct{}

// Reconcile implements step.
func (t *terminateHook) Reconcile(_ context.Context, s *scope) (bool, error) {
	return len(s.machine.Spec.LifecycleHooks.PreTerminate) == 0, nil
}

// destruction has the instance removed and goes on once it is gone.
type destruction struct {
	actuator actuators.Actuator
	clock    clock.PassiveClock
}

// Reconcile implements step.
func (d *destruction) Reconcile(ctx context.Context, s *scope) (bool, error) {
	if err := d.actuator.Delete(ctx, s.machine); err != nil && !d.ignorable(s.machine, err) {
		return false, d.failed(s, err)
	}
	exists, err := d.actuator.Exists(ctx, s.machine)
	if err != nil {
		return false, fmt.Errorf("checking whether the instance still exists: %w", err)
	}
	if exists {
		s.lookAgain(lookAgainAfter)
		return false, nil
	}
	return true, nil
}

// ignorable reports whether err stands in nobody's way: what cannot be understood and never had an instance may go.
func (d *destruction) ignorable(machine *machinev1beta1.Machine, err error) bool {
	return actuators.IsInvalidConfiguration(err) && len(machine.Status.Addresses) == 0
}

func (d *destruction) failed(s *scope, err error) error {
	if requeue, ok := actuators.AsRequeueAfter(err); ok {
		s.lookAgain(requeue.After)
		return nil
	}
	reason := string(machinev1beta1.DeleteMachineError)
	var machineError *actuators.MachineError
	if errors.As(err, &machineError) {
		reason = string(machineError.Reason)
	}
	setCondition(s.machine, upToDate(corev1.ConditionFalse, reason, err.Error()), d.clock.Now())
	if machineError != nil && machineError.RetryAfter > 0 {
		s.lookAgain(machineError.RetryAfter)
		return nil
	}
	return fmt.Errorf("deleting the instance: %w", err)
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
