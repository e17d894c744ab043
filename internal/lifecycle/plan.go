package lifecycle

import (
	"errors"
	"fmt"
	"strings"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// planResult says whether a plan may be applied. At most one of its texts is set, and then nothing is applied.
type planResult struct {
	// Refused says why the change is refused.
	Refused string
	// Missing says that the instance is gone, and how that was found.
	Missing string
	// Changes says that there is something to apply.
	Changes bool
}

// CheckUpdate checks a plan that updates an instance. Broken are the messages of conditions of resources which do not hold;
// the plan may lack the rest then. Provisioned says that the Machine has once carried an instance's outputs.
func CheckUpdate(report *engine.Report, broken []string, provisioned bool) planResult {
	if len(broken) > 0 {
		return planResult{Refused: notInPlace(strings.Join(broken, " "))}
	}
	return CheckPlan(runs.Update, report, provisioned)
}

// CheckPlan checks a plan of an operation. Provisioned says that the Machine has once carried an instance's outputs.
func CheckPlan(operation runs.Operation, report *engine.Report, provisioned bool) planResult {
	if found := CompareInstance(report, nil); operation == runs.Update && found.Result == record.DriftMissing {
		return planResult{Missing: found.Summary}
	}
	return planResult{Refused: refusalOf(operation, report, provisioned), Changes: !report.NoChange()}
}

// CompareInstance returns what a plan that asks for nothing new says of the instance: whether it is as applied, changed or missing. The names of the
// attributes that would change are by the addresses of resources; nil where they are not known.
func CompareInstance(report *engine.Report, attributes map[string][]string) record.DriftCheck {
	for _, gone := range report.Missing() {
		if gone.Instance() {
			return record.DriftCheck{Result: record.DriftMissing, Summary: fmt.Sprintf("the instance %s is gone: it was removed outside of this operator", gone.Address)}
		}
	}
	var differences []string
	for _, change := range report.Changes {
		if change.Action != engine.ActionNoOp && change.Action != engine.ActionRead {
			difference := describe(change)
			if names := attributes[change.Address]; len(names) > 0 {
				difference += " in " + strings.Join(names, ", ")
			}
			differences = append(differences, difference)
		}
	}
	if len(differences) == 0 {
		return record.DriftCheck{Result: record.DriftNone}
	}
	return record.DriftCheck{Result: record.DriftChanged, Summary: "the instance is not as it was made: to bring it back, " + strings.Join(differences, "; ")}
}

// refusalOf returns why a plan may not be applied, "" when it may. Nothing may be destroyed that the Machine has shown: neither
// the instance, nor what goes with it.
func refusalOf(operation runs.Operation, report *engine.Report, provisioned bool) string {
	var refused []string
	if operation == runs.Update {
		for _, change := range report.Creates() {
			if change.Instance() && !change.Import {
				return "the state does not know the instance, and an update makes none: " + describe(change)
			}
		}
	}
	for _, change := range report.Destroys() {
		halfMade := operation == runs.Create && !provisioned && change.Action == engine.ActionReplace && change.Reason == "tainted"
		if !halfMade {
			refused = append(refused, describe(change))
		}
	}
	if len(refused) == 0 {
		return ""
	}
	return notInPlace(fmt.Sprintf("%s; a Machine's instance is never replaced, so make a new Machine instead "+
		"(delete this one and its MachineSet makes another), or take the change back", strings.Join(refused, ", ")))
}

// notInPlace says why a change is refused.
func notInPlace(why string) string { return "the change cannot be made in place: " + why }

// RefusedByModule returns what a module says against a change by the conditions of its resources, "" when anything else is wrong.
func RefusedByModule(err error) string {
	failed, ok := errors.AsType[*failure.Error](err)
	if !ok || len(failed.Diagnostics) == 0 {
		return ""
	}
	messages := make([]string, 0, len(failed.Diagnostics))
	for _, diagnostic := range failed.Diagnostics {
		if !diagnostic.ConditionFailed() {
			return ""
		}
		messages = append(messages, diagnostic.Reason())
	}
	return notInPlace(strings.Join(messages, " "))
}

func describe(change engine.Change) string {
	verb := map[engine.Action]string{
		engine.ActionReplace: "would be replaced", engine.ActionDelete: "would be destroyed", engine.ActionForget: "would be dropped from the state",
		engine.ActionUpdate: "would change", engine.ActionCreate: "would be made", engine.ActionImport: "would be imported",
	}[change.Action]
	if change.Reason == "" {
		return change.Address + " " + verb
	}
	return fmt.Sprintf("%s %s (%s)", change.Address, verb, change.Reason)
}
