package iac

import (
	"hash/fnv"
	"time"

	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// action is what a verb does.
type action int

const (
	// done: there is nothing to do.
	done action = iota
	// await: a run is under way.
	await
	// start: submit a run. The pool holds one back that has failed, until its pause is over.
	start
	// refuse: the change was planned before and refused.
	refuse
	// unreachable: the state is gone and nothing can find the instance.
	unreachable
)

// decision is what a verb does, and with what.
type decision struct {
	action    action
	operation runs.Operation
	// lookup: an instance may exist that the state lacks; find it first.
	lookup bool
	// repair: nothing is asked for but that the instance be as it was.
	repair bool
}

// decideCreate decides what Create does.
func decideCreate(f *facts, canLookUp bool) decision {
	switch {
	case f.active():
		return decision{action: await}
	case f.instance():
		return decision{action: done}
	}
	return decision{action: start, operation: runs.Create, lookup: f.lost() && canLookUp}
}

// upkeep says what the time has come for, as far as a Machine is settled.
type upkeep struct {
	// check is comparing the instance with what it should be, repair is bringing it back to that.
	check, repair bool
}

// decideUpdate decides what Update does for a Machine whose inputs have a fingerprint.
func decideUpdate(f *facts, fingerprint string, due upkeep) decision {
	settled := f.settled(fingerprint)
	switch {
	case f.active() && f.run.Operation == runs.Drift, f.active() && settled:
		return decision{action: done}
	case f.active():
		return decision{action: await}
	case settled && due.repair:
		return decision{action: start, operation: runs.Update, repair: true}
	case settled && due.check:
		return decision{action: start, operation: runs.Drift}
	case settled:
		return decision{action: done}
	case f.record.Intent == nil && f.record.Refusal.of(fingerprint):
		return decision{action: refuse}
	}
	return decision{action: start, operation: runs.Update}
}

// decideDelete decides what Delete does.
func decideDelete(f *facts, canLookUp bool) decision {
	switch {
	case !f.stored && f.run != nil && f.run.Operation == runs.Destroy && f.run.Phase == runs.Succeeded:
		return decision{action: done}
	case f.active() && (f.run.Phase == runs.Running || f.run.Operation == runs.Destroy):
		return decision{action: await}
	case !f.stored && !f.provisioned && !f.active():
		return decision{action: done}
	case !f.stored && !canLookUp:
		return decision{action: unreachable}
	}
	return decision{action: start, operation: runs.Destroy, lookup: f.lost() && canLookUp}
}

// driftAfter answers how long after a check the next one is due: the interval, a tenth more or less, spread by the Machine's UID
// so that Machines made together are not checked together.
func driftAfter(interval time.Duration, uid string) time.Duration {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(uid)) // a hash takes everything
	const steps = 1000
	return interval - interval/10 + interval/5*time.Duration(hash.Sum32()%steps)/steps
}

// firstLook is how long after its create an instance is looked at that has told no address.
const firstLook = 20 * time.Second

// addressesAfter answers how long after a check an instance is looked at again that has told no address. age is how old the instance
// was at that check: the pauses grow with it.
func addressesAfter(age time.Duration) time.Duration { return max(firstLook, age/2) }
