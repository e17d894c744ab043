package offline

import (
	tfjson "github.com/hashicorp/terraform-json"

	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
)

// addCheck adds what conditions come to, where that is open or where they do not hold.
func addCheck(plans []*Plan, check tfjson.CheckResultStatic) {
	kind := check.Address.Kind
	n, address, ours := callOf(check.Address.ToDisplay)
	if !ours || kind != tfjson.CheckKindResource && kind != tfjson.CheckKindOutputValue {
		return
	}
	if check.Status == tfjson.CheckStatusUnknown {
		plans[n].Open = append(plans[n].Open, address)
	}
	for _, instance := range check.Instances {
		for _, problem := range instance.Problems {
			plans[n].Broken = append(plans[n].Broken, problem.Message)
		}
	}
}

// addWarnings adds each to the plan that it is about, or to all.
func addWarnings(plans []*Plan, warnings []failure.Diagnostic) {
	for _, warning := range warnings {
		if warning.Severity == failure.SeverityError {
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
