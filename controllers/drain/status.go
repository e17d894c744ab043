package drain

import (
	"context"
	"fmt"
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
)

const (
	// TimedOut is the reason of Drained=True when the Machine's timeout ended the drain.
	TimedOut = "DrainTimedOut"
	// WaitingForControlPlane is the reason of Drained=False while another control-plane Node is
	// cordoned. It is no error.
	WaitingForControlPlane = "WaitingForControlPlane"
)

// shouldDrain reports whether the Machine's Node is to be drained.
func shouldDrain(machine *machinev1beta1.Machine) bool {
	return !machine.DeletionTimestamp.IsZero() &&
		machineapi.Phase(machine) == machinev1beta1.PhaseDeleting &&
		controllerutil.ContainsFinalizer(machine, machinev1beta1.MachineFinalizer) &&
		!machineapi.Drained(machine) &&
		machineapi.AuthorityOfMachine(machine).IsMachineAPI()
}

// drainedCondition returns the condition that lets the deletion continue. A drain that succeeded or
// was skipped has no reason.
func drainedCondition(reason, message string) machinev1beta1.Condition {
	return machinev1beta1.Condition{
		Type: machinev1beta1.MachineDrained, Status: corev1.ConditionTrue, Reason: reason, Message: message,
	}
}

// notDrainedCondition returns the condition that reports what a drain waits for.
func notDrainedCondition(severity machinev1beta1.ConditionSeverity, reason, message string) machinev1beta1.Condition {
	return machinev1beta1.Condition{
		Type: machinev1beta1.MachineDrained, Status: corev1.ConditionFalse, Severity: severity, Reason: reason,
		Message: message,
	}
}

// finish writes the status when it differs, then sends the events and calls afterWrite. After a
// conflict the reconcile is repeated instead.
func (c *Controller) finish(ctx context.Context, s *scope) error {
	if err := c.write(ctx, s); err != nil {
		return s.Written(err)
	}
	for _, n := range s.events {
		n.Send(c.recorder)
	}
	for _, do := range s.afterWrite {
		do()
	}
	return nil
}

func (c *Controller) write(ctx context.Context, s *scope) error {
	if slices.Equal(s.original.Status.Conditions, s.machine.Status.Conditions) {
		return nil
	}
	updated := metav1.NewTime(c.clock.Now())
	s.machine.Status.LastUpdated = &updated
	if err := c.client.Status().Patch(ctx, s.machine, pipeline.IfUnchanged(s.original)); err != nil {
		return fmt.Errorf("writing the condition Drained: %w", err)
	}
	s.progress.replaced = s.original.ResourceVersion
	return nil
}
