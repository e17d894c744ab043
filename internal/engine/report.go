package engine

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
)

// Action is what an engine plans or does to one resource.
type Action string

// The actions that engines name in their -json stream.
const (
	ActionNoOp    Action = "noop"
	actionMove    Action = "move"
	ActionCreate  Action = "create"
	ActionRead    Action = "read"
	ActionUpdate  Action = "update"
	ActionReplace Action = "replace"
	ActionDelete  Action = "delete"
	ActionImport  Action = "import"
	// ActionForget takes the resource out of the state and leaves the object alone. Engines spell it "remove".
	ActionForget Action = "remove"
)

// Change is what an engine plans for one resource, or what it found changed behind its back.
type Change struct {
	Ref
	// Address is the resource's address in the module, for example aws_instance.this.
	Address string
	// Type is the resource type, for example aws_instance.
	Type   string
	Action Action
	// Reason says why a resource is replaced or deleted, for example "cannot_update" or "tainted". Often empty.
	Reason string
	// Import is true where the change imports an existing object into the state. Action is then what is done besides.
	Import bool
}

// Applied is a change that the engine carried out.
type Applied struct {
	Ref
	Address string
	Action  Action
	// ID is the object's id where the engine reported it.
	ID string
}

// Operation says what a Summary counts.
type Operation string

// The operations of a Summary.
const (
	OperationPlan  Operation = "plan"
	OperationApply Operation = "apply"
)

// Summary is the engine's own count of changes.
type Summary struct {
	Operation Operation `json:"operation"`
	Add       int       `json:"add"`
	Change    int       `json:"change"`
	Remove    int       `json:"remove"`
	Import    int       `json:"import"`
	Forget    int       `json:"forget"`
}

func (s Summary) changes() int { return s.Add + s.Change + s.Remove + s.Import + s.Forget }

// Output is one output of the module.
type Output struct {
	Sensitive bool
	// Action is set in a plan: what will become of the output.
	Action Action
	// Value is the output's JSON value after an apply. It is nil where the output is sensitive or holds a sensitive string.
	Value json.RawMessage
}

// Report is what one operation of the engine said. Every text in it is free of the run's sensitive strings.
type Report struct {
	// Changes are the planned changes.
	Changes []Change
	// Drift is what changed since the state was written, without the engine.
	Drift []Change
	// Applied are the changes that were carried out, also those of an operation that failed later.
	Applied []Applied
	// Planned is the count of planned changes; its Operation is empty when the engine ended before it had a plan.
	Planned Summary
	// Done is the count of changes carried out; its Operation is empty for a plan and for an operation that failed.
	Done    Summary
	Outputs map[string]Output
	// Diagnostics are the engine's errors and warnings, in the order in which they were reported.
	Diagnostics []failure.Diagnostic
	// Text is what the engine wrote that was not a message of its -json stream, cut to some KiB. TextWithheld says that it is not to be shown.
	Text         string
	TextWithheld bool
	// Unknown is how many messages were of a type that is not known.
	Unknown int
	// Started is when the operation began, Duration how long it took.
	Started  time.Time
	Duration time.Duration
}

// changed leaves out what touches no resource: data sources that are read, and changes that are none.
func (r *Report) changed() []Change {
	return slices.DeleteFunc(slices.Clone(r.Changes), func(c Change) bool {
		return (c.Action == ActionNoOp || c.Action == ActionRead) && !c.Import
	})
}

func (r *Report) with(wanted ...Action) []Change {
	return slices.DeleteFunc(slices.Clone(r.Changes), func(c Change) bool { return !slices.Contains(wanted, c.Action) })
}

// planned reports whether there is a plan whose listed changes are the ones it counts. Engines list some changes (a resource that
// is forgotten and created anew) as no change at all, so a decision that rests on the list alone would let them pass.
func (r *Report) planned() bool {
	if r.Planned.Operation != OperationPlan {
		return false
	}
	counted := r.counted()
	// Terraform does not count what is forgotten.
	return counted == r.Planned || (r.Planned.Forget == 0 && counted.Forget > 0 && withoutForget(counted) == r.Planned)
}

// counted counts the planned changes as an engine does.
func (r *Report) counted() Summary {
	counted := Summary{Operation: OperationPlan}
	for _, change := range r.Changes {
		if change.Import {
			counted.Import++
		}
		switch change.Action {
		case ActionCreate:
			counted.Add++
		case ActionUpdate:
			counted.Change++
		case ActionDelete:
			counted.Remove++
		case ActionReplace:
			counted.Add++
			counted.Remove++
		case ActionForget:
			counted.Forget++
		default: // the others are not counted by engines either
		}
	}
	return counted
}

func withoutForget(s Summary) Summary {
	s.Forget = 0
	return s
}

// NoChange reports whether the plan leaves every resource and every output as it is. It is false when there is no plan.
func (r *Report) NoChange() bool {
	return r.resourcesStay() && !r.outputsChange()
}

// OutputsOnly reports whether the plan leaves every resource as it is and changes outputs. Applying it touches the state only.
func (r *Report) OutputsOnly() bool {
	return r.resourcesStay() && r.outputsChange()
}

// CreatesOnly reports whether the plan does nothing but create resources and import existing ones (which it may then change in
// place). It is false when there is no plan.
func (r *Report) CreatesOnly() bool {
	return r.planned() && !slices.ContainsFunc(r.changed(), func(c Change) bool {
		return !c.Import && c.Action != ActionCreate || c.Import && destroys(c)
	})
}

// InPlaceOnly reports whether the plan does nothing but change resources in place, or changes only outputs or nothing at all. A
// plan that creates a resource is not in place. It is false when there is no plan.
func (r *Report) InPlaceOnly() bool {
	return r.planned() && !slices.ContainsFunc(r.changed(), func(c Change) bool {
		return c.Import || c.Action != ActionUpdate && c.Action != actionMove
	})
}

// DestroysOnly reports whether the plan does nothing but delete resources. It is false when there is no plan.
func (r *Report) DestroysOnly() bool {
	return r.planned() && !slices.ContainsFunc(r.changed(), func(c Change) bool { return c.Action != ActionDelete })
}

// Replaces returns the planned changes that delete a resource and create another in its place.
func (r *Report) Replaces() []Change { return r.with(ActionReplace) }

// Destroys returns the planned changes after which an object is gone or no longer known: deletes, replaces and forgets.
func (r *Report) Destroys() []Change { return r.with(ActionDelete, ActionReplace, ActionForget) }

// Creates returns the planned changes that make a new object where none is to be deleted.
func (r *Report) Creates() []Change { return r.with(ActionCreate) }

// Missing returns the resources of the state whose objects were found to be gone.
func (r *Report) Missing() []Change {
	return slices.DeleteFunc(slices.Clone(r.Drift), func(c Change) bool { return c.Action != ActionDelete })
}

// InstanceGone reports whether the object of the instance was found to be gone.
func (r *Report) InstanceGone() bool { return slices.ContainsFunc(r.Missing(), Change.Instance) }

func (r *Report) resourcesStay() bool {
	return r.planned() && len(r.changed()) == 0 && r.Planned.changes() == 0
}

func (r *Report) outputsChange() bool {
	for _, output := range r.Outputs {
		if output.Action != "" && output.Action != ActionNoOp {
			return true
		}
	}
	return false
}

func destroys(c Change) bool {
	return c.Action == ActionDelete || c.Action == ActionReplace || c.Action == ActionForget
}

// Errors returns the diagnostics of the report that are errors.
func (r *Report) Errors() []failure.Diagnostic { return failure.Errors(r.Diagnostics) }

// ForModule returns what the report says of one call of a module, with addresses as the module itself has them. Outputs are those of the root
// and are left out, and so is what is said of no address.
func (r *Report) ForModule(call string) *Report {
	inside := func(address string) (string, bool) { return strings.CutPrefix(address, call+".") }
	part := &Report{Outputs: map[string]Output{}, Started: r.Started, Duration: r.Duration}
	for from, to := range map[*[]Change]*[]Change{&r.Changes: &part.Changes, &r.Drift: &part.Drift} {
		for _, change := range *from {
			if address, ok := inside(change.Address); ok {
				change.Address, change.Ref = address, change.within(call)
				*to = append(*to, change)
			}
		}
	}
	for _, applied := range r.Applied {
		if address, ok := inside(applied.Address); ok {
			applied.Address, applied.Ref = address, applied.within(call)
			part.Applied = append(part.Applied, applied)
		}
	}
	for _, diagnostic := range r.Diagnostics {
		if address, ok := inside(diagnostic.Address); ok {
			diagnostic.Address = address
			diagnostic.Summary, diagnostic.Detail = strings.ReplaceAll(diagnostic.Summary, call+".", ""), strings.ReplaceAll(diagnostic.Detail, call+".", "")
			part.Diagnostics = append(part.Diagnostics, diagnostic)
		}
	}
	if r.planned() {
		part.Planned = part.counted()
	}
	return part
}
