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

// planResult says whether a plan may be applied. It must not be if Refused or Missing is set; at
// most one is.
type planResult struct {
	// Refused says why the change is refused.
	Refused string
	// Missing says how the instance was found to be gone.
	Missing string
	// Changes reports whether there is something to apply.
	Changes bool
}

// CheckUpdate checks a plan that updates an instance. broken holds the messages of failed resource
// conditions; the plan may then be incomplete. provisioned reports whether the Machine has ever
// carried an instance's outputs.
func CheckUpdate(report *engine.Report, broken []string, provisioned bool) planResult {
	if len(broken) > 0 {
		return planResult{Refused: notInPlace(strings.Join(broken, " "))}
	}
	return CheckPlan(runs.Update, report, provisioned)
}

// CheckPlan checks an operation's plan. provisioned reports whether the Machine has ever carried an
// instance's outputs.
func CheckPlan(operation runs.Operation, report *engine.Report, provisioned bool) planResult {
	if found := CompareInstance(report, nil); operation == runs.Update && found.Result == record.DriftMissing {
		return planResult{Missing: found.Summary}
	}
	return planResult{Refused: refusalOf(operation, report, provisioned), Changes: !report.NoChange()}
}

// CompareInstance evaluates a plan of the applied configuration: the instance is as applied,
// changed or missing. attributes maps the addresses of resources to the attributes that would
// change; nil if unknown.
func CompareInstance(report *engine.Report, attributes map[string][]string) record.DriftCheck {
	for _, gone := range report.Missing() {
		if gone.Instance() {
			return record.DriftCheck{Result: record.DriftMissing,
				Summary: fmt.Sprintf("instance %s is gone: it was removed outside this operator", gone.Address)}
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
	return record.DriftCheck{Result: record.DriftChanged, Summary: "the instance has drifted; to repair it, " +
		strings.Join(differences, "; ")}
}

// refusalOf returns why a plan must not be applied, or "" if it may. Resources that the Machine has
// already reported must not be destroyed: neither the instance nor anything attached to it.
func refusalOf(operation runs.Operation, report *engine.Report, provisioned bool) string {
	var refused []string
	if operation == runs.Update {
		for _, change := range report.Creates() {
			if change.Instance() && !change.Import {
				return "the instance is not in the state, and an update does not create one: " + describe(change)
			}
		}
	}
	for _, change := range report.Destroys() {
		// A half-made instance is untainted and checked instead.
		halfMade := operation == runs.Create && !provisioned && change.Action == engine.ActionReplace &&
			change.Reason == "tainted" && !change.Instance()
		if !halfMade {
			refused = append(refused, describe(change))
		}
	}
	if len(refused) == 0 {
		return ""
	}
	return notInPlace(fmt.Sprintf("%s; a Machine's instance is never replaced: create a new Machine "+
		"(delete this one and its MachineSet creates another), or revert the change", strings.Join(refused, ", ")))
}

// notInPlace formats the reason for refusing a change.
func notInPlace(why string) string { return "the change cannot be made in place: " + why }

// RefusedByModule returns the messages of a module's failed resource conditions, or "" if anything
// else failed.
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
		engine.ActionReplace: "would be replaced", engine.ActionDelete: "would be destroyed",
		engine.ActionForget: "would be dropped from the state",
		engine.ActionUpdate: "would change", engine.ActionCreate: "would be created",
		engine.ActionImport: "would be imported",
	}[change.Action]
	if change.Reason == "" {
		return change.Address + " " + verb
	}
	return fmt.Sprintf("%s %s (%s)", change.Address, verb, change.Reason)
}
