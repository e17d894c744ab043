package iac

import (
	"fmt"
	"hash/fnv"
	"time"

	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// action is what a verb or a run does.
type action int

const (
	// done: there is nothing to do.
	done action = iota
	// await: a run is under way.
	await
	// start: a run is to be submitted or, under the lock, carried out. The pool holds one back that has failed, until its pause is over.
	start
	// later: look again at a certain time.
	later
	// refuse: the change was planned before and refused.
	refuse
	// unresolved: an instance may exist that nothing can find. A person must say.
	unresolved
	// foreign: the instance is not this operator's.
	foreign
)

// decision is what is done, with what, and why.
type decision struct {
	action    action
	operation runs.Operation
	// lookup: an instance may exist that the state lacks; find it first. Of a drift check: look whether there is a second one.
	lookup bool
	// repair: nothing is asked for but that the instance be as it was.
	repair bool
	// until is when to look again, with later.
	until time.Time
	// reason says why, for people.
	reason string
}

// means is what can be done about a Machine at a time.
type means struct {
	now time.Time
	// fingerprint is that of what the Machine asks for; empty where that is not known.
	fingerprint string
	// lookup says that the module can find an instance. settle is how long after the end of a run "not found" counts.
	lookup bool
	settle time.Duration
	// due says what the time has come for, as far as the Machine is settled.
	due upkeep
}

// upkeep says what the time has come for.
type upkeep struct {
	// check is comparing the instance with what it should be, repair is bringing it back to that, second is looking for a second instance.
	check, repair, second bool
}

// decide returns what becomes of an operation that is asked for. It is asked twice: by the verb, which submits a run, and by the run
// itself once it holds the lock, of which the second counts.
func decide(asked runs.Operation, f *facts, m means) decision {
	switch asked {
	case runs.Create:
		return decideCreate(f, m)
	case runs.Destroy:
		return decideDelete(f, m)
	default:
		return decideUpdate(f, m)
	}
}

func decideCreate(f *facts, m means) decision {
	switch {
	case f.active():
		return decision{action: await, reason: "a run is under way"}
	case f.foreign():
		return decision{action: foreign}
	case f.instance():
		return decision{action: done, reason: "the state has the instance"}
	case f.lost():
		return decideLost(runs.Create, f, m)
	}
	return decision{action: start, operation: runs.Create, reason: "nothing was made yet"}
}

// decideLost decides what is done where an instance may exist that the state lacks.
func decideLost(operation runs.Operation, f *facts, m means) decision {
	switch until, looked := f.lookAgain(m); {
	case f.confirmedAbsent():
		return decision{action: start, operation: operation, reason: "annotation " + NoInstanceAnnotation + " says that run " + f.lostRun() + " left nothing"}
	case !m.lookup:
		return decision{action: unresolved, operation: operation}
	case looked && m.now.Before(until):
		return decision{
			action: later, operation: operation, until: until,
			reason: fmt.Sprintf("the lookup has found nothing so far; what run %s asked for may still appear", f.lostRun()),
		}
	case f.record.Intent != nil:
		return decision{action: start, operation: operation, lookup: true, reason: "run " + f.lostRun() + " has not settled: what it made is looked up"}
	}
	return decision{action: start, operation: operation, lookup: true, reason: "the Secret with the state is gone: the instance is looked up"}
}

// lookAgain returns when a lookup that finds nothing counts, and whether one has found nothing before.
func (f *facts) lookAgain(m means) (until time.Time, looked bool) {
	if f.record.Intent == nil {
		return time.Time{}, false
	}
	return f.record.Intent.Died.Add(m.settle), f.record.Intent.Looked
}

func decideUpdate(f *facts, m means) decision {
	settled := f.settled(m.fingerprint)
	switch {
	case f.active() && settled && f.run.Operation == runs.Drift:
		return decision{action: done, reason: "as it is asked for"}
	case f.active() && (f.run.Operation != runs.Drift || f.run.Phase != runs.Queued):
		return decision{action: await, reason: "a run is under way"}
	case f.foreign():
		return decision{action: foreign}
	case f.lost():
		return decideLost(runs.Update, f, m)
	case settled:
		return m.due.decide()
	case f.record.Intent == nil && f.record.Refusal.of(m.fingerprint):
		return decision{action: refuse, reason: "the change was refused before"}
	case f.record.Intent != nil:
		return decision{action: start, operation: runs.Update, reason: "run " + f.record.Intent.Run + " has not settled"}
	}
	return decision{action: start, operation: runs.Update, reason: "other inputs, module or credentials than the instance has"}
}

// decide returns what is done about a Machine that is as it is asked for.
func (u upkeep) decide() decision {
	switch {
	case u.repair:
		return decision{action: start, operation: runs.Update, repair: true, reason: "the last drift check found the instance changed"}
	case u.second:
		return decision{action: start, operation: runs.Drift, lookup: true, reason: "it was made after a lookup that found nothing: a second instance is looked for"}
	case u.check:
		return decision{action: start, operation: runs.Drift, reason: "a drift check is due"}
	}
	return decision{action: done, reason: "as it is asked for"}
}

func decideDelete(f *facts, m means) decision {
	switch {
	case f.destroyed() && !f.resources():
		return decision{action: done, reason: "the instance is destroyed"}
	case f.active():
		return decision{action: await, reason: "a run is under way"}
	case f.foreign():
		return decision{action: foreign}
	case !f.stored && f.witness == nil:
		return decision{action: done, reason: "nothing was made"}
	case f.lost():
		return decideLost(runs.Destroy, f, m)
	case f.instance() && f.missing() && m.now.Before(f.record.Check.At.Add(secondAfter(m.settle))):
		return decision{
			action: later, operation: runs.Destroy, until: f.record.Check.At.Add(secondAfter(m.settle)),
			reason: "the instance was not found; it is looked for once more before its state is given up",
		}
	}
	// A destroy that was cut short may have dropped from the state what it did not find.
	cutShort := f.record.Intent != nil && !f.instance()
	return decision{action: start, operation: runs.Destroy, lookup: cutShort && m.lookup, reason: "the Machine is deleted"}
}

// longestSecond bounds how long an instance that was not found waits for the second look: nothing is to appear any more, as it is after a
// lost create; it only must not have been a moment's answer.
const longestSecond = time.Minute

// secondAfter returns how long after an instance was not found it is looked for once more, by the settling time of its module.
func secondAfter(settle time.Duration) time.Duration { return min(settle, longestSecond) }

// overtaken returns what a run finds that waited while its Machine changed: there is nothing to do where the decision is done.
func overtaken(asked runs.Operation, f *facts) decision {
	switch {
	case f.gone && (asked != runs.Destroy || f.record.Intent == nil || f.record.Intent.Operation != runs.Destroy):
		return decision{action: done, reason: "the Machine is gone"}
	case asked != runs.Destroy && f.deleting:
		return decision{action: done, reason: "the Machine is being deleted"}
	case asked == runs.Destroy && !f.deleting && !f.gone:
		return decision{action: done, reason: "the Machine is not deleted"}
	}
	return decision{action: start, operation: asked}
}

// driftAfter returns how long after a check the next one is due: the interval, a tenth more or less, spread by the Machine's UID
// so that Machines made together are not checked together.
func driftAfter(interval time.Duration, uid string) time.Duration {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(uid)) // a hash takes everything
	const steps = 1000
	return interval - interval/10 + interval/5*time.Duration(hash.Sum32()%steps)/steps
}

// firstLook is how long after its create an instance is looked at that has told no address.
const firstLook = 20 * time.Second

// addressesAfter returns how long after a check an instance is looked at again that has told no address. age is how old the instance
// was at that check: the pauses grow with it.
func addressesAfter(age time.Duration) time.Duration { return max(firstLook, age/2) }
