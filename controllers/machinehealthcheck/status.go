package machinehealthcheck

import (
	"context"
	"fmt"
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
)

// The reasons of conditions.
const (
	tooManyUnhealthyReason      = machinev1beta1.TooManyUnhealthyReason
	templateNotFoundReason      = machinev1beta1.ExternalRemediationTemplateNotFound
	requestCreationFailedReason = machinev1beta1.ExternalRemediationRequestCreationFailed
	invalidMaxUnhealthyReason   = "InvalidMaxUnhealthy"
	invalidSelectorReason       = "InvalidSelector"
	invalidSpecReason           = "InvalidSpec"
)

// showAllowed puts into the status that Machines may be remediated.
func showAllowed(s *scope, count tally, most int) {
	showNumbers(&s.check.Status, count, remediationsAllowed(most, count.unhealthy()))
	s.show(machinev1beta1.Condition{Type: machinev1beta1.RemediationAllowedCondition, Status: corev1.ConditionTrue})
}

// showBlocked puts into the status that Machines may not be remediated, and says so.
func showBlocked(s *scope, count tally, reason, why string) {
	severity := machinev1beta1.ConditionSeverityError
	if reason == tooManyUnhealthyReason {
		severity = machinev1beta1.ConditionSeverityWarning
	}
	showNumbers(&s.check.Status, count, 0)
	s.show(machinev1beta1.Condition{
		Type:     machinev1beta1.RemediationAllowedCondition,
		Status:   corev1.ConditionFalse,
		Severity: severity,
		Reason:   reason,
		Message:  "Remediation is not allowed: " + why,
	})
	s.say("restricted", why, remediationRestricted(s.check, why))
}

func showNumbers(status *machinev1beta1.MachineHealthCheckStatus, count tally, allowed int32) {
	status.ExpectedMachines = ptr.To(count.expected)
	status.CurrentHealthy = ptr.To(count.healthy)
	status.RemediationsAllowed = allowed
}

// showTemplate sets the condition about the remediation template from what the pass found.
func showTemplate(s *scope, err error) {
	condition := machinev1beta1.Condition{
		Type:   machinev1beta1.ExternalRemediationTemplateAvailable,
		Status: corev1.ConditionTrue,
	}
	if err != nil {
		condition.Status = corev1.ConditionFalse
		condition.Severity = machinev1beta1.ConditionSeverityError
		condition.Reason = templateNotFoundReason
		condition.Message = err.Error()
	}
	s.show(condition)
}

// showRequests sets the condition about remediation requests: False when requests could not be read or made, True while there are
// some, and none when there is nothing to tell.
func showRequests(s *scope, failures []error) {
	condition := machinev1beta1.Condition{
		Type:   machinev1beta1.ExternalRemediationRequestAvailable,
		Status: corev1.ConditionTrue,
	}
	switch {
	case len(failures) > 0:
		condition.Status = corev1.ConditionFalse
		condition.Severity = machinev1beta1.ConditionSeverityError
		condition.Reason = requestCreationFailedReason
		condition.Message = failures[0].Error()
		if more := len(failures) - 1; more > 0 {
			condition.Message += fmt.Sprintf(" (and %d more)", more)
		}
	case !slices.ContainsFunc(s.targets, func(t *target) bool { return t.requested && !t.healthy() }):
		hide(s, condition.Type)
		return
	}
	s.show(condition)
}

// hide takes a condition out of the status.
func hide(s *scope, kind machinev1beta1.ConditionType) {
	ofKind := func(c machinev1beta1.Condition) bool { return c.Type == kind }
	s.check.Status.Conditions = slices.DeleteFunc(slices.Clone(s.check.Status.Conditions), ofKind)
}

// patchStatus writes the status when it differs. Conditions are a list that a patch replaces as a whole, so nobody may have written
// since it was read.
func (c *Controller) patchStatus(ctx context.Context, before, after *machinev1beta1.MachineHealthCheck) error {
	if equality.Semantic.DeepEqual(before.Status, after.Status) {
		return nil
	}
	patch, err := pipeline.IfUnchanged(before).Data(after)
	if err != nil {
		return fmt.Errorf("comparing the MachineHealthCheck with its original: %w", err)
	}
	object := written() // the answer may hold what the type cannot
	object.SetNamespace(after.Namespace)
	object.SetName(after.Name)
	if err := c.client.Status().Patch(ctx, object, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("writing the status of the MachineHealthCheck: %w", err)
	}
	return nil
}
