package machinedeployment

import (
	"context"
	"fmt"
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
)

// report writes the condition RolledOut. Without a reason, the rollout was stopped, and that of one in
// progress is removed.
func (c *Sets) report(ctx context.Context, r *rollingSet, reason, message string) error {
	out := r.set.DeepCopy()
	if reason == "" {
		out.Status.Conditions = slices.DeleteFunc(out.Status.Conditions, func(c machinev1beta1.Condition) bool {
			return c.Type == v1beta1.ConditionRolledOut &&
				(c.Reason == v1beta1.ReasonRolloutInProgress || c.Reason == v1beta1.ReasonStopped)
		})
	} else {
		condition := machinev1beta1.Condition{Type: v1beta1.ConditionRolledOut, Status: corev1.ConditionFalse,
			Severity: machinev1beta1.ConditionSeverityInfo, Reason: reason, Message: message}
		if reason == v1beta1.ReasonRolledOut {
			condition.Status, condition.Severity = corev1.ConditionTrue, machinev1beta1.ConditionSeverityNone
		}
		out.Status.Conditions = machineapi.WithCondition(out.Status.Conditions, condition, c.options.Clock.Now())
	}
	if equality.Semantic.DeepEqual(out.Status.Conditions, r.set.Status.Conditions) {
		return nil
	}
	err := c.write(&r.scope, func() error { return c.client.Status().Patch(ctx, out, pipeline.IfUnchanged(r.set)) })
	if err != nil {
		return fmt.Errorf("writing the status of the MachineSet: %w", err)
	}
	return nil
}
