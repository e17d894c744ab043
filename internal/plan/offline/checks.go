package offline

import (
	"slices"

	tfjson "github.com/hashicorp/terraform-json"

	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
)

// addCheck records the undecided and failed conditions.
func addCheck(plans []*Plan, check tfjson.CheckResultStatic) {
	kind := check.Address.Kind
	n, address, ours := callOf(check.Address.ToDisplay)
	if !ours ||
		!slices.Contains([]tfjson.CheckKind{tfjson.CheckKindResource, tfjson.CheckKindOutputValue,
			tfjson.CheckKindCheckBlock}, kind) {
		return
	}
	if check.Status == tfjson.CheckStatusUnknown {
		plans[n].Open = append(plans[n].Open, address)
	}
	if kind == tfjson.CheckKindCheckBlock {
		return // the engine warns of failed ones
	}
	for _, instance := range check.Instances {
		for _, problem := range instance.Problems {
			plans[n].Broken = append(plans[n].Broken, problem.Message)
		}
	}
}

// Summaries of warnings that are not about a plan.
const (
	// openCheck is about a check that cannot be decided before an apply.
	openCheck = "Check block assertion known after apply"
	// emptyProvider is about a module that is called, as the planner does and runs do not.
	emptyProvider = "Redundant empty provider block"
)

// addWarnings adds each warning to the plan that it is about, or to all plans.
func addWarnings(plans []*Plan, warnings []failure.Diagnostic) {
	for _, warning := range warnings {
		// The engine warns of undecided checks without naming them.
		if warning.Severity == failure.SeverityError || warning.Summary == openCheck || warning.Summary == emptyProvider {
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
