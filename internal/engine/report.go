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
	// ActionForget removes the resource from the state and keeps the object. Engines call it "remove".
	ActionForget Action = "remove"
)

// Change is a change that an engine plans for a resource, or a change from outside that it
// detected.
type Change struct {
	Ref
	// Address is the resource's address in the module, for example aws_instance.this.
	Address string
	// Type is the resource type, for example aws_instance.
	Type   string
	Action Action
	// Reason is why a resource is replaced or deleted, for example "cannot_update" or "tainted". Often
	// empty.
	Reason string
	// Import is true if the change imports an existing object. Action is then what happens to it
	// otherwise.
	Import bool
}

// Applied is a change that the engine made.
type Applied struct {
	Ref
	Address string
	Action  Action
	// ID is the object's ID if the engine reported it.
	ID string
}

// Operation is what a Summary counts.
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
	// Action is what a plan does to the output.
	Action Action
	// Value is the output's JSON value after an apply. It is nil if the output is sensitive or
	// contains a sensitive string. In JSON, such a value is left out, unlike null.
	Value json.RawMessage `json:",omitempty"`
}

// Report is the result of one engine operation. All of its text is redacted.
type Report struct {
	// Changes are the planned changes.
	Changes []Change
	// Drift are changes that something other than the engine made since the state was written.
	Drift []Change
	// Applied are the changes that were made, including those of an operation that failed later.
	Applied []Applied
	// Planned counts the planned changes. Its Operation is empty if the engine ended before it had a
	// plan.
	Planned Summary
	// Done counts the changes that were made. Its Operation is empty for a plan and for a failed
	// operation.
	Done    Summary
	Outputs map[string]Output
	// Diagnostics are the engine's errors and warnings, in the order reported.
	Diagnostics []failure.Diagnostic
	// Text is engine output that was not a message of its -json stream, truncated to some KiB.
	// TextWithheld means that it must not be shown.
	Text         string
	TextWithheld bool
	// Unknown is the number of messages of unknown types.
	Unknown int
	// Providers lists the provider binaries that the operation used, with their SHA-256. It is empty
	// if the engine does not know.
	Providers string
	// Started is when the operation began, Duration how long it took.
	Started  time.Time
	Duration time.Duration
}

// changed returns the planned changes without no-ops and reads of data sources.
func (r *Report) changed() []Change {
	return slices.DeleteFunc(slices.Clone(r.Changes), func(c Change) bool {
		return (c.Action == ActionNoOp || c.Action == ActionRead) && !c.Import
	})
}

func (r *Report) with(wanted ...Action) []Change {
	return slices.DeleteFunc(slices.Clone(r.Changes), func(c Change) bool { return !slices.Contains(wanted, c.Action) })
}

// planned reports whether there is a plan whose listed changes match its counts. Engines list some
// changes as no-ops, such as a resource that is forgotten and created again. A decision based on
// the list alone would miss them.
func (r *Report) planned() bool {
	if r.Planned.Operation != OperationPlan {
		return false
	}
	counted := r.Counted(OperationPlan)
	// Terraform does not count forgotten resources.
	return counted == r.Planned || (r.Planned.Forget == 0 && counted.Forget > 0 && withoutForget(counted) == r.Planned)
}

// Counted counts the changes as an engine does.
func (r *Report) Counted(operation Operation) Summary {
	counted := Summary{Operation: operation}
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
		default: // engines do not count the others either
		}
	}
	return counted
}

func withoutForget(s Summary) Summary {
	s.Forget = 0
	return s
}

// NoChange reports whether the plan changes no resource and no output. It is false if there is no
// plan.
func (r *Report) NoChange() bool {
	return r.resourcesStay() && !r.outputsChange()
}

// OutputsOnly reports whether the plan changes outputs but no resource. Applying it only writes the
// state.
func (r *Report) OutputsOnly() bool {
	return r.resourcesStay() && r.outputsChange()
}

// CreatesOnly reports whether the plan only creates resources or imports existing ones, which it
// may then change in place. It is false if there is no plan.
func (r *Report) CreatesOnly() bool {
	return r.planned() && !slices.ContainsFunc(r.changed(), func(c Change) bool {
		return !c.Import && c.Action != ActionCreate || c.Import && destroys(c)
	})
}

// InPlaceOnly reports whether the plan only changes resources in place, only changes outputs, or
// changes nothing. It is false if there is no plan.
func (r *Report) InPlaceOnly() bool {
	return r.planned() && !slices.ContainsFunc(r.changed(), func(c Change) bool {
		return c.Import || c.Action != ActionUpdate && c.Action != actionMove
	})
}

// Destroys returns the planned changes that delete an object or stop tracking it: deletes, replaces
// and forgets.
func (r *Report) Destroys() []Change { return r.with(ActionDelete, ActionReplace, ActionForget) }

// Creates returns the planned changes that create an object without deleting one.
func (r *Report) Creates() []Change { return r.with(ActionCreate) }

// Missing returns the resources of the state whose objects no longer exist.
func (r *Report) Missing() []Change {
	return slices.DeleteFunc(slices.Clone(r.Drift), func(c Change) bool { return c.Action != ActionDelete })
}

// InstanceGone reports whether the instance no longer exists.
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

// ForModule returns the part of the report about one module call, with addresses as seen from
// inside the module. It omits outputs, which belong to the root module, and anything without an
// address.
func (r *Report) ForModule(call string) *Report {
	inside := func(address string) (string, bool) { return strings.CutPrefix(address, call+".") }
	part := &Report{Outputs: map[string]Output{}, Providers: r.Providers, Started: r.Started, Duration: r.Duration}
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
			diagnostic.Summary, diagnostic.Detail = strings.ReplaceAll(diagnostic.Summary, call+".",
				""), strings.ReplaceAll(diagnostic.Detail, call+".", "")
			part.Diagnostics = append(part.Diagnostics, diagnostic)
		}
	}
	if r.planned() {
		part.Planned = part.Counted(OperationPlan)
	}
	return part
}
