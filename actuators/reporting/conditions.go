package reporting

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
)

// Drifted is the condition that reports the last drift check.
const Drifted = "Drifted"

// DriftCondition returns the finding of the last check and the operator's response, or nil before
// the first check.
func DriftCondition(f *lifecycle.Facts, interval time.Duration, now time.Time) *metav1.Condition {
	condition := &metav1.Condition{Type: Drifted, LastTransitionTime: metav1.NewTime(now.Truncate(time.Second))}
	found, last := f.Record.Check, f.Record.Repair
	requested := found != nil && found.Request != "" && found.Request == f.CheckRequest
	if f.Drift.Policy == v1alpha1.DriftIgnore && !requested && (found == nil || found.Result != record.DriftMissing) {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionUnknown, "Ignored",
			"drift is not checked: the drift policy is Ignore"
		return condition
	}
	if found == nil {
		return nil
	}
	condition.LastTransitionTime = metav1.NewTime(found.At.Truncate(time.Second))
	condition.Status, condition.Reason = metav1.ConditionFalse, "AsApplied"
	if found.Result != record.DriftNone {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, "Instance"+string(found.Result),
			found.Summary
	}
	if found.Result == record.DriftChanged && f.Drift.Policy == v1alpha1.DriftRepair && last != nil {
		condition.Message += "; " + last.Message(interval)
	}
	if f.Drift.Misread != "" {
		condition.Message = joined(condition.Message, f.Drift.Misread+"; until that is fixed, drift is only reported")
	}
	return condition
}

// joined joins the non-empty texts.
func joined(first, second string) string {
	if first == "" {
		return second
	}
	return first + "; " + second
}
