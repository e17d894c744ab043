package offline

import (
	"slices"

	tfjson "github.com/hashicorp/terraform-json"

	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
)

// addCheck adds what conditions come to, where that is open or where they do not hold.
func addCheck(plans []*Plan, check tfjson.CheckResultStatic) {
	kind := check.Address.Kind
	n, address, ours := callOf(check.Address.ToDisplay)
	if !ours || !slices.Contains([]tfjson.CheckKind{tfjson.CheckKindResource, tfjson.CheckKindOutputValue, tfjson.CheckKindCheckBlock}, kind) {
		return
	}
	if check.Status == tfjson.CheckStatusUnknown {
		plans[n].Open = append(plans[n].Open, address)
	}
	if kind == tfjson.CheckKindCheckBlock {
		return // the engine warns of those that do not hold
	}
	for _, instance := range check.Instances {
		for _, problem := range instance.Problems {
			plans[n].Broken = append(plans[n].Broken, problem.Message)
		}
	}
}

// openCheck is what the engine calls a check that cannot be decided before an apply.
const openCheck = "Check block assertion known after apply"

// addWarnings adds each to the plan that it is about, or to all.
func addWarnings(plans []*Plan, warnings []failure.Diagnostic) {
	for _, warning := range warnings {
		// It warns of open checks too, and does not name them.
		if warning.Severity == failure.SeverityError || warning.Summary == openCheck {
			continue
		}
		for n, plan := range plans {
			if call, address, ours := callOf(warning.Address); !ours || call == n {
				own := warning
				own.Address = address
				plan.Warnings = append(plan.Warnings, own)
			}
		}
	}
}
