package reporting

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
)

// AdoptedType is the condition that reports whether an existing instance is adopted.
const AdoptedType = "Adopted"

// AdoptedCondition returns that condition without a time, or nil if it does not apply. refused says
// why an adoption cannot even be planned. outcome says why the Machine is left alone.
func AdoptedCondition(f *lifecycle.Facts, refused string, outcome error) *metav1.Condition {
	condition := &metav1.Condition{Type: AdoptedType, Status: metav1.ConditionFalse}
	switch {
	case f.Foreign():
		condition.Reason = adoptionReason(f, refused)
		if outcome != nil {
			condition.Message = outcome.Error()
		}
	case f.Adoption.Denied != "": // a denied release: the operator keeps managing the instance
		condition.Reason, condition.Message = f.Adoption.DeniedReason, f.Adoption.Denied
		if f.Adopted() {
			condition.Status = metav1.ConditionTrue
		}
	case f.Adopted() && f.HasInstance():
		condition.Status, condition.Reason = metav1.ConditionTrue, "Adopted"
	default:
		return nil
	}
	return condition
}

// adoptionReason returns the condition's reason for an instance that is not adopted.
func adoptionReason(f *lifecycle.Facts, refused string) string {
	const refusedReason = "Refused"
	planned := f.Record.AdoptionPlan
	switch {
	case f.Adoption.Denied != "":
		return f.Adoption.DeniedReason
	case refused != "":
		return refusedReason
	case f.Adoption.Adoption == lifecycle.AdoptionRelease:
		return "Released"
	case f.Adoption.Misread != "":
		return "InvalidAnnotation"
	case !f.Adoption.Requested():
		return "NotRequested"
	case planned == nil || planned.At.IsZero():
		return "InProgress"
	case planned.Refused != "":
		return refusedReason
	case f.Adoption.Adoption == lifecycle.AdoptionPlan:
		return "Planned"
	}
	return "InProgress"
}

// AdoptionStatus returns an adoption plan in the form of the provider status, or nil.
func AdoptionStatus(planned *record.PlannedAdoption) *v1alpha1.AdoptionStatus {
	if planned == nil || planned.At.IsZero() {
		return nil
	}
	return &v1alpha1.AdoptionStatus{
		PlannedAt: metav1.NewTime(planned.At), Imports: planned.Imports, Creates: planned.Creates, Changes: planned.Changes,
		Differences: planned.Differences, Refused: planned.Refused,
	}
}
