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
	// TimedOut is the reason of Drained=True when the Machine's own deadline ended the drain with pods left behind.
	TimedOut = "DrainTimedOut"
	// WaitingForControlPlane is the reason of Drained=False while another control-plane Node is cordoned. It is no failure.
	WaitingForControlPlane = "WaitingForControlPlane"
)

// toBeDrained reports whether the Machine is one to act upon.
func toBeDrained(machine *machinev1beta1.Machine) bool {
	return !machine.DeletionTimestamp.IsZero() &&
		machineapi.Phase(machine) == machinev1beta1.PhaseDeleting &&
		controllerutil.ContainsFinalizer(machine, machinev1beta1.MachineFinalizer) &&
		!machineapi.Drained(machine) &&
		machineapi.AuthorityOfMachine(machine).IsMachineAPI()
}

// drained answers the condition that lets the deletion go on. The reason is empty for a drain that ended as it should.
func drained(reason, message string) machinev1beta1.Condition {
	return machinev1beta1.Condition{
		Type: machinev1beta1.MachineDrained, Status: corev1.ConditionTrue, Reason: reason, Message: message,
	}
}

// undrained answers the condition that tells what a drain waits for.
func undrained(severity machinev1beta1.ConditionSeverity, reason, message string) machinev1beta1.Condition {
	return machinev1beta1.Condition{
		Type: machinev1beta1.MachineDrained, Status: corev1.ConditionFalse, Severity: severity, Reason: reason, Message: message,
	}
}

// finish writes the status when it differs, sends the notices that are true then, and does what had to wait for it. When another
// writer was faster, all is done again.
func (c *Controller) finish(ctx context.Context, s *scope) error {
	if err := c.write(ctx, s); err != nil {
		return s.Written(err)
	}
	for _, n := range s.notices {
		n.Send(c.recorder)
	}
	for _, do := range s.settled {
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
	s.record.replaced = s.original.ResourceVersion
	return nil
}
