package iac

import (
	"strings"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// Ruling is what the actuator makes of the plan of a change. At most one of its texts is set, and then nothing is applied.
type Ruling struct {
	// Refused says why the change is not let through.
	Refused string
	// Missing says that the instance is gone.
	Missing string
	// Changes says that there is something to apply.
	Changes bool
}

// RuleUpdate answers what becomes of a plan that updates an instance. Broken are the messages of conditions of resources which do not hold;
// the plan may lack the rest then. Provisioned says that the Machine has once carried an instance's outputs.
func RuleUpdate(report *engine.Report, broken []string, provisioned bool) Ruling {
	if len(broken) > 0 {
		return Ruling{Refused: notInPlace(strings.Join(broken, " "))}
	}
	return rule(runs.Update, report, provisioned)
}

func rule(operation runs.Operation, report *engine.Report, provisioned bool) Ruling {
	if found := judge(report); operation == runs.Update && found.Verdict == verdictMissing {
		return Ruling{Missing: found.Summary}
	}
	return Ruling{Refused: refusalOf(operation, report, provisioned), Changes: !report.NoChange()}
}

// Drift answers what a plan that asks for nothing new tells of the instance: how it differs from what was applied, or that it is gone;
// empty when it is as it was applied.
func Drift(report *engine.Report) string { return judge(report).Summary }
