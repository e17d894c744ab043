package lifecycle

import (
	"fmt"
	"time"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// Action is what a verb or a run does.
type Action int

const (
	// ActionDone means that there is nothing to do.
	ActionDone Action = iota
	// ActionInProgress means that a run is queued or running.
	ActionInProgress
	// ActionStart means to submit a run or, under the lock, to carry it out. The pool holds one back that has failed, until its pause is over.
	ActionStart
	// ActionRequeueAfter means to decide again at a certain time.
	ActionRequeueAfter
	// ActionRefuse means that the change was planned before and refused.
	ActionRefuse
	// ActionUnresolved means that an instance may exist that nothing can find. A person must confirm that there is none.
	ActionUnresolved
	// ActionForeign means that the instance was not made by this operator.
	ActionForeign
	// ActionLook means that there is nothing to do but to look whether the instance is still there, which needs no lock.
	ActionLook
)

// Decision is what is done, with what, and why.
type Decision struct {
	Action    Action
	Operation runs.Operation
	// Lookup: an instance may exist that the state lacks; look it up first. Of a drift check: look whether there is a second instance.
	Lookup bool
	// Adopt: the instance was made by something else; find it by its provider ID and bring it into the state, or plan that.
	Adopt bool
	// Release: forget the state, and leave the instance.
	Release bool
	// Repair: the desired state has not changed, but the instance has.
	Repair bool
	// Look: a look at the instance, which is a drift check to the pool.
	Look bool
	// Until is when to decide again, with ActionRequeueAfter.
	Until time.Time
	// Reason says why, for people.
	Reason string
}

// Batched reports whether one process of an engine may carry the run out together with those of other Machines: a create of which nothing is known yet, where the module has a lookup, a
// destroy of what the state knows, the check of an instance that was as applied the last time, and a look.
func (d Decision) Batched(f *Facts, lookup bool) bool {
	if d.Lookup || d.Adopt || d.Release {
		return false
	}
	switch d.Operation {
	case runs.Create:
		return lookup && !f.HasResources() // without one, somebody would have to look for each of them after a kill
	case runs.Destroy:
		return f.HasResources()
	case runs.Drift:
		return d.Look || f.Record.Check == nil || f.Record.Check.Result == record.DriftNone
	default:
		return false
	}
}

// Target is what the facts are compared with: the desired state in brief, the time, and what is due.
type Target struct {
	Now time.Time
	// Fingerprint is that of the desired state; empty where that is not known.
	Fingerprint string
	// Lookup says that the module can look up an instance. Settle is how long after the end of a run "not found" counts.
	Lookup bool
	Settle time.Duration
	// Adopt says that the module can adopt an instance.
	Adopt bool
	// Due says what is due where the Machine is settled.
	Due Due
}

// Due says what is due for a Machine that is settled.
type Due struct {
	// Check is a drift check, Repair brings back an instance that has drifted, SecondLook looks for a second instance.
	Check, Repair, SecondLook bool
	// Look is a look whether the instance is still there, which costs less than a drift check.
	Look bool
}

// Decide returns what is done about an operation that is asked for. It is called twice: by the verb, which submits a run, and by the run
// itself once it holds the lock. The second decision counts.
func Decide(asked runs.Operation, f *Facts, t Target) Decision {
	if f.Adoption.Adoption == AdoptionRelease && !f.Destroyed() {
		return decideRelease(f)
	}
	switch asked {
	case runs.Create:
		return decideCreate(f, t)
	case runs.Destroy:
		return decideDelete(f, t)
	default:
		return decideUpdate(f, t)
	}
}

func decideCreate(f *Facts, t Target) Decision {
	switch {
	case f.Active():
		return Decision{Action: ActionInProgress, Reason: "a run is under way"}
	case f.Foreign():
		return Decision{Action: ActionForeign}
	case f.HasInstance():
		return Decision{Action: ActionDone, Reason: "the state has the instance"}
	case f.Unrecorded():
		return decideLost(runs.Create, f, t)
	}
	return Decision{Action: ActionStart, Operation: runs.Create, Reason: "nothing was made yet"}
}

// decideLost decides what is done where an instance may exist that the state lacks.
func decideLost(operation runs.Operation, f *Facts, t Target) Decision {
	switch until, looked := f.lookupSettles(t); {
	case f.ConfirmedAbsent():
		return Decision{Action: ActionStart, Operation: operation, Reason: "annotation " + record.NoInstanceAnnotation + " says that run " + f.AbandonedRun() + " left nothing"}
	case f.Adopted() && !t.Adopt, !f.Adopted() && !t.Lookup:
		return Decision{Action: ActionUnresolved, Operation: operation}
	case looked && t.Now.Before(until):
		return Decision{
			Action: ActionRequeueAfter, Operation: operation, Until: until,
			Reason: fmt.Sprintf("the lookup has found nothing so far; what run %s asked for may still appear", f.AbandonedRun()),
		}
	case f.Record.Intent != nil:
		return Decision{Action: ActionStart, Operation: operation, Lookup: true, Reason: "run " + f.AbandonedRun() + " has not settled: what it made is looked up"}
	}
	return Decision{Action: ActionStart, Operation: operation, Lookup: true, Reason: "the Secret with the state is gone: the instance is looked up"}
}

// lookupSettles returns when a lookup that finds nothing counts, and whether one has found nothing before.
func (f *Facts) lookupSettles(t Target) (until time.Time, looked bool) {
	if f.Record.Intent == nil {
		return time.Time{}, false
	}
	return f.Record.Intent.Died.Add(t.Settle), f.Record.Intent.Looked
}

func decideUpdate(f *Facts, t Target) Decision {
	settled := f.Settled(t.Fingerprint)
	switch {
	case f.Active() && settled && f.Run.Operation == runs.Drift:
		return Decision{Action: ActionDone, Reason: "as it is asked for"}
	case f.Active() && (f.Run.Operation != runs.Drift || f.Run.Phase != runs.Queued):
		return Decision{Action: ActionInProgress, Reason: "a run is under way"}
	case f.Foreign():
		return decideForeign(f, t)
	case f.Unrecorded():
		return decideLost(runs.Update, f, t)
	case settled:
		return t.Due.decide()
	case f.Record.Intent == nil && f.Record.Refusal.Of(t.Fingerprint):
		return Decision{Action: ActionRefuse, Reason: "the change was refused before"}
	case f.Record.Intent != nil:
		return Decision{Action: ActionStart, Operation: runs.Update, Reason: "run " + f.Record.Intent.Run + " has not settled"}
	}
	return Decision{Action: ActionStart, Operation: runs.Update, Reason: "other inputs, module or credentials than the instance has"}
}

// decide returns what is done about a Machine that is settled.
func (u Due) decide() Decision {
	switch {
	case u.Repair:
		return Decision{Action: ActionStart, Operation: runs.Update, Repair: true, Reason: "the last drift check found the instance changed"}
	case u.SecondLook:
		return Decision{Action: ActionStart, Operation: runs.Drift, Lookup: true, Reason: "it was made after a lookup that found nothing: a second instance is looked for"}
	case u.Check:
		return Decision{Action: ActionStart, Operation: runs.Drift, Reason: "a drift check is due"}
	case u.Look:
		return Decision{Action: ActionLook, Reason: "as it is asked for; it is looked whether the instance is still there"}
	}
	return Decision{Action: ActionDone, Reason: "as it is asked for"}
}

func decideDelete(f *Facts, t Target) Decision {
	switch {
	case f.Destroyed() && !f.HasResources():
		return Decision{Action: ActionDone, Reason: "the instance is destroyed"}
	case f.Active():
		return Decision{Action: ActionInProgress, Reason: "a run is under way"}
	case f.Foreign() && f.Adoption.Adoption == AdoptionAdopt:
		return decideForeign(f, t) // it is destroyed once it is adopted
	case f.Foreign():
		return Decision{Action: ActionForeign}
	case !f.Stored && f.Witness == nil:
		return Decision{Action: ActionDone, Reason: "nothing was made"}
	case f.Unrecorded():
		return decideLost(runs.Destroy, f, t)
	case f.HasInstance() && f.Missing() && t.Now.Before(f.Record.Check.At.Add(SecondLookAfter(t.Settle))):
		return Decision{
			Action: ActionRequeueAfter, Operation: runs.Destroy, Until: f.Record.Check.At.Add(SecondLookAfter(t.Settle)),
			Reason: "the instance was not found; it is looked for once more before its state is given up",
		}
	}
	// A destroy that was cut short may have dropped from the state what it did not find.
	cutShort := f.Record.Intent != nil && !f.HasInstance()
	return Decision{Action: ActionStart, Operation: runs.Destroy, Lookup: cutShort && t.Lookup, Reason: f.whyDestroy()}
}

// maxSecondLook bounds how long an instance that was not found waits for the second look. Unlike after an abandoned create, nothing can appear any
// more: the second look only rules out that the first was wrong for a moment.
const maxSecondLook = time.Minute

// SecondLookAfter returns how long after an instance was not found it is looked for again, by the settling time of its module.
func SecondLookAfter(settle time.Duration) time.Duration { return min(settle, maxSecondLook) }

// Stale returns the decision of a run whose Machine may have changed while it was queued: ActionDone where the operation is not wanted any more.
func Stale(asked runs.Operation, f *Facts) Decision {
	switch {
	case f.Gone && (asked != runs.Destroy || destroys(f.Orphan, f.Record.Intent) == "" && !f.emptyHead()):
		return Decision{Action: ActionDone, Reason: "the Machine is gone"}
	case asked != runs.Destroy && f.Deleting && !f.adoptionGoesOn():
		return Decision{Action: ActionDone, Reason: "the Machine is being deleted"}
	case asked == runs.Destroy && !f.Deleting && !f.Gone:
		return Decision{Action: ActionDone, Reason: "the Machine is not deleted"}
	}
	return Decision{Action: ActionStart, Operation: asked}
}
