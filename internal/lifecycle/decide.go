package lifecycle

import (
	"fmt"
	"time"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// Action is the next step of a verb or a run.
type Action int

const (
	// ActionDone needs nothing to be done.
	ActionDone Action = iota
	// ActionInProgress waits for a run that is queued or running.
	ActionInProgress
	// ActionStart submits a run or, when the lock is held, executes it. The pool delays a failed
	// run until its backoff expires.
	ActionStart
	// ActionRequeueAfter decides again at a certain time.
	ActionRequeueAfter
	// ActionRefuse rejects a change that was planned and refused earlier.
	ActionRefuse
	// ActionUnresolved stops: an instance may exist that no lookup can find. A person must confirm
	// that there is none.
	ActionUnresolved
	// ActionForeign leaves an instance alone that this operator did not create.
	ActionForeign
	// ActionLook checks that the instance still exists. It needs no lock.
	ActionLook
)

// Decision is an action, its parameters, and the reason for it.
type Decision struct {
	Action    Action
	Operation runs.Operation
	// Lookup searches first for an instance that the state may lack. A drift check with Lookup
	// searches for a duplicate.
	Lookup bool
	// Adopt finds an existing instance by its provider ID and imports it, or plans the import.
	Adopt bool
	// Release discards the state and keeps the instance.
	Release bool
	// Repair reverts drift: the instance has changed, the desired state has not.
	Repair bool
	// Beside uses the configuration applied last, because the Machine's update cannot be made.
	// Between is Beside while the failed update is retried.
	Beside, Between bool
	// Look checks that the instance exists. The pool treats it as a drift check.
	Look bool
	// Until is when to decide again after ActionRequeueAfter.
	Until time.Time
	// Reason is for people.
	Reason string
}

// Batched reports whether the run can share an engine process with other Machines' runs: first
// creates (if the module has a lookup), destroys, checks of clean instances, and looks. Updates,
// lookups and adoptions read a plan of one Machine before they apply it, and a release needs no
// engine.
func (d Decision) Batched(f *Facts, lookup bool) bool {
	if d.Lookup || d.Adopt || d.Release {
		return false
	}
	switch d.Operation {
	case runs.Create:
		return lookup && !f.HasResources() // without a lookup, a killed batch leaves every instance to be found by hand
	case runs.Destroy:
		return f.HasResources()
	case runs.Drift:
		return d.Look || f.Record.Check == nil || f.Record.Check.Result == record.DriftNone
	default:
		return false
	}
}

// Target is the desired state that Decide compares the facts with.
type Target struct {
	Now time.Time
	// Fingerprint identifies the desired state; empty if unknown.
	Fingerprint string
	// Lookup reports whether the module can look up an instance. Settle is how long after the end
	// of a run a "not found" becomes reliable.
	Lookup bool
	Settle time.Duration
	// Search reports whether an instance may exist from before this leader's term that no record
	// mentions.
	Search bool
	// Adopt reports whether the module can adopt an instance.
	Adopt bool
	// Trying reports whether a failed update is being retried. It is set for DecideBeside only.
	Trying bool
	// Due is what is due once the Machine is settled.
	Due Due
}

// Due is what is due for a settled Machine.
type Due struct {
	// Check is a drift check, Repair reverts drift, SecondLook searches for a duplicate instance.
	Check, Repair, SecondLook bool
	// Look checks that the instance exists. It costs less than a drift check.
	Look bool
}

// Decide returns the action for a requested operation. The verb calls it to submit a run; the run
// calls it again under the lock. The second decision is authoritative.
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
		return Decision{Action: ActionInProgress, Reason: "a run is in progress"}
	case f.Foreign():
		return Decision{Action: ActionForeign}
	case f.HasInstance():
		return Decision{Action: ActionDone, Reason: "the state has the instance"}
	case f.awaitsSecondLook(t):
		return f.secondLook(runs.Create, t)
	case f.HalfMade():
		return Decision{Action: ActionStart, Operation: runs.Create,
			Reason: "the create was interrupted; resuming with the resources it made"}
	case f.Unrecorded():
		return decideLost(runs.Create, f, t)
	case t.Search && t.Lookup:
		return Decision{Action: ActionStart, Operation: runs.Create, Lookup: true,
			Reason: "the Machine is older than this leader's term; looking up an earlier instance"}
	}
	return Decision{Action: ActionStart, Operation: runs.Create, Reason: "nothing was created yet"}
}

// decideLost returns the decision for an instance that may exist but that the state lacks.
func decideLost(operation runs.Operation, f *Facts, t Target) Decision {
	switch until, looked := f.lookupSettles(t); {
	case f.ConfirmedAbsent():
		return Decision{Action: ActionStart, Operation: operation,
			Reason: "annotation " + record.NoInstanceAnnotation + " confirms that run " + f.AbandonedRun() + " left nothing"}
	case !f.Stored && f.Witness != nil && f.Witness.Claims, f.Adopted() && !t.Adopt, !f.Adopted() && !t.Lookup:
		return Decision{Action: ActionUnresolved, Operation: operation}
	case looked && t.Now.Before(until):
		return Decision{
			Action: ActionRequeueAfter, Operation: operation, Until: until,
			Reason: fmt.Sprintf("the lookup found nothing so far; an instance from run %s may still appear", f.AbandonedRun()),
		}
	case f.Record.Intent != nil:
		return Decision{Action: ActionStart, Operation: operation, Lookup: true,
			Reason: "run " + f.AbandonedRun() + " has not settled; looking up what it created"}
	}
	return Decision{Action: ActionStart, Operation: operation, Lookup: true,
		Reason: "the state Secret is gone; looking up the instance"}
}

// lookupSettles returns when a "not found" becomes reliable, and whether a lookup has found nothing
// before.
func (f *Facts) lookupSettles(t Target) (until time.Time, looked bool) {
	if f.Record.Intent == nil {
		return time.Time{}, false
	}
	return f.Record.Intent.Died.Add(t.Settle), f.Record.Intent.Looked
}

func decideUpdate(f *Facts, t Target) Decision {
	settled, refused := f.Settled(t.Fingerprint), f.Record.Intent == nil && f.Record.Refusal.Of(t.Fingerprint)
	checking := f.Active() && f.Run.Operation == runs.Drift
	switch {
	case checking && settled:
		return Decision{Action: ActionDone, Reason: "up to date"}
	case checking && refused:
		return Decision{Action: ActionRefuse, Reason: "the change was already refused"}
	case f.Active() && (!checking || f.Run.Phase != runs.Queued):
		return Decision{Action: ActionInProgress, Reason: "a run is in progress"}
	case f.Foreign():
		return decideForeign(f, t)
	case f.Unrecorded():
		return decideLost(runs.Update, f, t)
	case settled:
		return t.Due.decide()
	case refused:
		return Decision{Action: ActionRefuse, Reason: "the change was already refused"}
	case f.Record.Intent != nil:
		return Decision{Action: ActionStart, Operation: runs.Update,
			Reason: "run " + f.Record.Intent.Run + " has not settled"}
	}
	return Decision{Action: ActionStart, Operation: runs.Update, Reason: "inputs, module or credentials changed"}
}

// DecideBeside returns the action for an instance whose Machine's update cannot be made now: it was
// refused, cannot be rendered, waits for something, or backs off. The target is the configuration
// applied last. As with Decide, the second call is authoritative.
func DecideBeside(f *Facts, t Target) Decision {
	if f.Active() || f.Deleting || f.Adoption.Adoption == AdoptionRelease || !f.Exists() {
		return Decision{Action: ActionDone, Reason: "the Machine has no instance to check"}
	}
	due := t.Due
	if t.Trying || f.Record.Intent != nil {
		due.Repair = false // a retried or started update comes first
	}
	d := due.decide()
	d.Beside, d.Between = true, t.Trying
	return d
}

func (u Due) decide() Decision {
	switch {
	case u.Repair:
		return Decision{Action: ActionStart, Operation: runs.Update, Repair: true,
			Reason: "the last drift check found the instance changed"}
	case u.SecondLook:
		return Decision{Action: ActionStart, Operation: runs.Drift, Lookup: true,
			Reason: "the instance was created after a lookup that found nothing; looking for a duplicate"}
	case u.Check:
		return Decision{Action: ActionStart, Operation: runs.Drift, Reason: "a drift check is due"}
	case u.Look:
		return Decision{Action: ActionLook, Reason: "up to date; checking that the instance still exists"}
	}
	return Decision{Action: ActionDone, Reason: "up to date"}
}

func decideDelete(f *Facts, t Target) Decision {
	switch {
	case f.Destroyed() && !f.Stored:
		return Decision{Action: ActionDone, Reason: "the instance is destroyed"}
	case f.Active():
		return Decision{Action: ActionInProgress, Reason: "a run is in progress"}
	case f.Foreign() && f.adoptionGoesOn():
		return decideForeign(f, t) // destroy it after the adoption
	case f.Foreign():
		return Decision{Action: ActionForeign}
	case !f.Stored && f.Witness == nil:
		return Decision{Action: ActionDone, Reason: "nothing was created"}
	case f.Unrecorded():
		return decideLost(runs.Destroy, f, t)
	case f.awaitsSecondLook(t):
		return f.secondLook(runs.Destroy, t)
	}
	// An interrupted destroy may have dropped resources from the state that it did not find.
	cutShort := f.Record.Intent != nil && !f.HasInstance() && !f.HalfMade() && !f.Destroyed()
	return Decision{Action: ActionStart, Operation: runs.Destroy, Lookup: cutShort && t.Lookup, Reason: f.whyDestroy()}
}

// awaitsSecondLook reports whether the instance in the state was not found and its second look is
// not due yet.
func (f *Facts) awaitsSecondLook(t Target) bool {
	return (f.HasInstance() || f.HalfMade()) && f.Missing() &&
		t.Now.Before(f.Record.Check.At.Add(SecondLookAfter(t.Settle)))
}

// secondLook returns the decision to wait for the second look.
func (f *Facts) secondLook(operation runs.Operation, t Target) Decision {
	return Decision{
		Action: ActionRequeueAfter, Operation: operation, Until: f.Record.Check.At.Add(SecondLookAfter(t.Settle)),
		Reason: "the instance was not found; looking once more before its state is discarded",
	}
}

// maxSecondLook bounds the wait for the second look. No instance can still appear, unlike after an
// abandoned create. The second look only guards against a transient "not found".
const maxSecondLook = time.Minute

// SecondLookAfter returns how long after a "not found" the second look is due, given the module's
// settlement period.
func SecondLookAfter(settle time.Duration) time.Duration { return min(settle, maxSecondLook) }

// Stale returns ActionDone if the Machine changed while the run was queued and the operation is no
// longer wanted.
func Stale(asked runs.Operation, f *Facts) Decision {
	switch {
	case f.Gone && (asked != runs.Destroy || destroys(f.Orphan, f.Record.Intent) == "" && !f.emptyHead()):
		return Decision{Action: ActionDone, Reason: "the Machine is gone"}
	case asked != runs.Destroy && f.Deleting && !f.adoptionGoesOn():
		return Decision{Action: ActionDone, Reason: "the Machine is being deleted"}
	case asked == runs.Destroy && !f.Deleting && !f.Gone:
		return Decision{Action: ActionDone, Reason: "the Machine is not being deleted"}
	}
	return Decision{Action: ActionStart, Operation: asked}
}
