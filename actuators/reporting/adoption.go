package reporting

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
)

// AdoptionRefused is the reason of the condition Adopted where an adoption is refused.
const AdoptionRefused = "Refused"

// AdoptionReason returns why an instance is not adopted, in one word.
func AdoptionReason(f *lifecycle.Facts) string {
	planned := f.Record.AdoptionPlan
	switch {
	case f.Adoption.Adoption == lifecycle.AdoptionRelease:
		return "Released"
	case f.Adoption.Misread != "":
		return "InvalidAnnotation"
	case !f.Adoption.Requested():
		return "NotRequested"
	case planned == nil || planned.At.IsZero():
		return "InProgress"
	case planned.Refused != "":
		return AdoptionRefused
	case f.Adoption.Adoption == lifecycle.AdoptionPlan:
		return "Planned"
	}
	return "InProgress"
}

// AdoptionStatus returns what was planned about an adoption, as the provider status has it; nil for nothing.
func AdoptionStatus(planned *record.PlannedAdoption) *v1alpha1.AdoptionStatus {
	if planned == nil || planned.At.IsZero() {
		return nil
	}
	return &v1alpha1.AdoptionStatus{
		PlannedAt: metav1.NewTime(planned.At), Imports: planned.Imports, Creates: planned.Creates, Changes: planned.Changes,
		Differences: planned.Differences, Refused: planned.Refused,
	}
}
