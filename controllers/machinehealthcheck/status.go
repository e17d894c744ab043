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

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
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

// setAllowed sets the status for remediation that is allowed.
func setAllowed(s *scope, count counts, most int) {
	setCounts(&s.check.Status, count, remediationsAllowed(most, count.unhealthy()))
	s.setCondition(machinev1beta1.Condition{Type: machinev1beta1.RemediationAllowedCondition,
		Status: corev1.ConditionTrue})
}

// setTooMany sets the status for remediation that is not allowed because too many Machines are
// unhealthy, and adds an event.
func setTooMany(s *scope, count counts) {
	numbers := count.describe(s.check.Spec.MaxUnhealthy)
	// Scripts compare the text up to the numbers, which is the Machine API's.
	setBlocked(s, count, machinev1beta1.ConditionSeverityWarning, tooManyUnhealthyReason,
		"Remediation is not allowed, the number of not started or unhealthy machines exceeds maxUnhealthy "+numbers)
	s.addEvent("restricted", numbers, tooManyUnhealthy(s.check, numbers))
}

// setInvalid sets the status for remediation that is not allowed because the spec is invalid, and
// adds an event.
func setInvalid(s *scope, count counts, reason, why string) {
	setBlocked(s, count, machinev1beta1.ConditionSeverityError, reason, "Remediation is not allowed: "+why)
	s.addEvent("restricted", why, remediationRestricted(s.check, why))
}

func setBlocked(s *scope, count counts, severity machinev1beta1.ConditionSeverity, reason, message string) {
	setCounts(&s.check.Status, count, 0)
	s.setCondition(machinev1beta1.Condition{
		Type: machinev1beta1.RemediationAllowedCondition, Status: corev1.ConditionFalse, Severity: severity, Reason: reason,
		Message: message,
	})
}

func setCounts(status *machinev1beta1.MachineHealthCheckStatus, count counts, allowed int32) {
	status.ExpectedMachines = ptr.To(count.expected)
	status.CurrentHealthy = ptr.To(count.healthy)
	status.RemediationsAllowed = allowed
}

// setTemplateCondition sets the condition about the remediation template.
func setTemplateCondition(s *scope, err error) {
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
	s.setCondition(condition)
}

// setRequestsCondition sets the condition about remediation requests: False when requests could not
// be read or made, True while there are some, else none.
func setRequestsCondition(s *scope, failures []error) {
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
		removeCondition(s, condition.Type)
		return
	}
	s.setCondition(condition)
}

// removeCondition removes a condition from the status.
func removeCondition(s *scope, kind machinev1beta1.ConditionType) {
	s.check.Status.Conditions = machineapi.WithoutCondition(s.check.Status.Conditions, kind)
}

// patchStatus writes the status when it differs, unless another writer has changed it since it was
// read.
func (c *Controller) patchStatus(ctx context.Context, before, after *machinev1beta1.MachineHealthCheck) error {
	if equality.Semantic.DeepEqual(before.Status, after.Status) {
		return nil
	}
	patch, err := pipeline.IfUnchanged(before).Data(after)
	if err != nil {
		return fmt.Errorf("comparing the MachineHealthCheck with its original: %w", err)
	}
	object := newUnstructured() // the response may have values that the type cannot represent
	object.SetNamespace(after.Namespace)
	object.SetName(after.Name)
	if err := c.client.Status().Patch(ctx, object, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("writing the status of the MachineHealthCheck: %w", err)
	}
	return nil
}
