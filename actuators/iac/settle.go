package iac

import (
	"context"
	"errors"
	"fmt"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// Settle implements runs.Task: a state that the engine could not save is saved, then one write clears intent and lock and records
// the outcome. The intent stays where nobody knows what the engine did.
func (t *task) Settle(ctx context.Context, outcome error) error {
	if err := t.save(ctx); err != nil {
		return runs.NotSettled(fmt.Errorf("saving the state that the engine could not save: %w", errors.Join(err, outcome)))
	}
	if outcome == nil && t.decision.operation == runs.Destroy {
		t.keepOutput(ctx)
		return t.gone(ctx)
	}
	if outcome == nil && (t.decision.operation == runs.Update && !t.decision.lookup || t.facts.inputs == nil && t.decision.operation != runs.Create) {
		if err := t.session.Attach(ctx, t.attachments()); err != nil {
			return runs.NotSettled(fmt.Errorf("recording the inputs: %w", err))
		}
	}
	t.keepOutput(ctx)
	settled := t.outcome(outcome)
	settled.ended(t.ended(outcome))
	if err := t.session.Release(ctx, settled.MetaPatch); err != nil {
		return runs.NotSettled(fmt.Errorf("recording the outcome: %w", errors.Join(err, outcome)))
	}
	return t.told(outcome)
}

// save stores a state that the engine could not save. While that fails its folder stays, and so do the lock and the intent: the Machine's
// next run begins with saving it.
func (t *task) save(ctx context.Context) error {
	if t.kept == nil {
		return nil
	}
	kept := t.kept
	if err := kept.Save(ctx); err != nil {
		return errors.Join(err, kept.Keep(), t.actuator.keep(t))
	}
	t.kept = nil
	return kept.Close()
}

// gone deletes a state whose instance is destroyed, once the Machine says so too: a manager that dies between the two must not look for
// the instance again. Should the state list resources still, it stays and the destroy has failed.
func (t *task) gone(ctx context.Context) error {
	if err := t.destroyed(ctx); err != nil {
		return t.failed(ctx, err)
	}
	if err := t.session.Delete(ctx); err != nil {
		return t.failed(ctx, err)
	}
	if t.facts.resources() || t.imported {
		succeeded(runs.Destroy, t.machine, "Deleted the instance").Send(t.actuator.recorder)
	}
	return nil
}

// destroyed writes on the Machine that its instance is gone. A Machine without a witness has had none.
func (t *task) destroyed(ctx context.Context) error {
	if t.facts.gone || t.facts.witness == nil && !t.facts.provisioned {
		return nil
	}
	now := t.actuator.clock.Now().UTC()
	w := witness{UID: string(t.uid), Run: t.id, Since: now, Destroyed: &now}
	err := t.actuator.testify(ctx, t.machine, w)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // the Machine is gone, or another has its name
	}
	return err
}

// failed gives the lock back after a destroy that could not be concluded.
func (t *task) failed(ctx context.Context, err error) error {
	p := newPatch()
	p.ended(t.ended(err))
	return typed(runs.Destroy, errors.Join(err, t.session.Release(ctx, p.MetaPatch)))
}

// ended returns what to tell people of the run.
func (t *task) ended(outcome error) ended {
	lock := t.session.Lock()
	last := ended{
		Operation: t.decision.operation, Run: t.id, Began: lock.Since.UTC(), Ended: t.actuator.clock.Now().UTC(), Result: endedWell, Reason: t.decision.reason,
	}
	switch _, open := errors.AsType[*undecidedError](outcome); {
	case outcome == nil:
		return last
	case open:
		last.Result = endedOpen
	case errors.Is(outcome, runs.ErrStopping):
		last.Result = endedEarly
	default:
		last.Result = endedBadly
	}
	last.Message = strings.ToValidUTF8(typed(t.decision.operation, outcome).Message, "")
	if len(last.Message) > maxMessage {
		last.Message = strings.ToValidUTF8(last.Message[:maxMessage], "") + "..."
	}
	return last
}

// outcome returns what to record.
func (t *task) outcome(outcome error) patch {
	p := newPatch()
	if t.decision.operation == runs.Drift {
		return t.checkedDrift(p, outcome)
	}
	t.settleIntent(p, outcome)
	if outcome == nil {
		p.reached(t.wanted.fingerprint, t.wanted.module.Reference())
		p.at(t.wanted.place)
	}
	if outcome == nil && t.renews {
		p.renewed()
	}
	switch {
	case t.found != nil:
		p.checked(*t.found)
	case outcome == nil:
		p.checked(*t.dated(check{Verdict: verdictNone}))
	}
	if outcome == nil && t.decision.operation == runs.Create && t.decision.lookup && !t.imported {
		at := t.actuator.clock.Now().Add(t.wanted.module.Settle())
		p.second(&at)
	}
	t.refusedOrRepaired(p, outcome)
	return p
}

func (t *task) checkedDrift(p patch, outcome error) patch {
	if outcome == nil && t.decision.lookup {
		p.second(nil)
	}
	if outcome == nil && t.found != nil {
		p.checked(*t.found)
		if t.found.Verdict == verdictNone && t.facts.record.Repair != nil {
			p.unrepaired()
		}
	}
	if outcome == nil && t.facts.record.Place == nil {
		p.at(t.wanted.place)
	}
	return p
}

// settleIntent clears the intent, or leaves it with what is known by now of the run that may have made an instance.
func (t *task) settleIntent(p patch, outcome error) {
	if _, open := errors.AsType[*undecidedError](outcome); open && t.decision.lookup {
		left := *t.intent
		left.Looked = true
		p.intend(left)
		return
	}
	if !t.doubtful(outcome) {
		p.settled()
		return
	}
	if t.decision.operation != runs.Create || !t.mayHaveMade(outcome) {
		return // it has made nothing: what is recorded stays true
	}
	left := *t.intent
	left.Lost, left.Died, left.Looked = t.id, t.actuator.clock.Now().UTC(), false
	p.intend(left)
}

// refusedOrRepaired records that a change was not let through, so that it is not planned again and again, and the same of repairs.
func (t *task) refusedOrRepaired(p patch, outcome error) {
	if outcome != nil && !refused(outcome) {
		return
	}
	var message string
	if outcome != nil {
		message = typed(t.decision.operation, outcome).Message
	}
	r := refusal{Fingerprint: t.wanted.of(), Message: message}
	switch {
	case t.decision.repair:
		p.repaired(t.facts.record.Repair.next(t.actuator.clock.Now(), message))
	case outcome == nil:
	case t.renews:
		p.refusedRenewal(r)
	default:
		p.refused(r)
	}
}

// doubtful reports whether a run that failed may have left something that the state lacks, or was to find out what an earlier run has left
// and did not.
func (t *task) doubtful(outcome error) bool {
	if outcome == nil {
		return false
	}
	return t.mayHaveMade(outcome) || t.intent.Lost != "" && !t.lookedUp && !t.facts.confirmedAbsent()
}

// mayHaveMade reports whether the engine may have made something that the state lacks: it was killed, or it was interrupted or failed while
// it made something, of which the answer may be lost. An answer that refuses is no lost one.
func (t *task) mayHaveMade(outcome error) bool {
	switch engine.ClassOf(outcome) {
	case engine.Killed:
		return t.touched
	case engine.InvalidConfiguration, engine.Quota, engine.Credentials, engine.Throttled:
		return false
	}
	return len(t.making) > 0
}

// told sends the events of an outcome and returns its typed error.
func (t *task) told(outcome error) error {
	recorder := t.actuator.recorder
	_, open := errors.AsType[*undecidedError](outcome)
	quiet := open || errors.Is(outcome, runs.ErrStopping)
	if t.decision.operation == runs.Drift && !quiet {
		t.toldDrift(outcome)
	}
	if t.decision.repair && !quiet {
		t.actuator.metrics.repaired(t.wanted.engine(), outcome, t.changed)
	}
	if outcome != nil {
		if !quiet {
			t.actuator.failed(t.decision.operation, t.machine, outcome)
		}
		return asMachineError(t.decision.operation, t.waiting(outcome))
	}
	switch {
	case t.imported:
		succeeded(t.decision.operation, t.machine, "Found the instance of run "+t.intent.Lost+" and took it into the state").Send(recorder)
	case t.decision.operation == runs.Create:
		succeeded(runs.Create, t.machine, "Created the instance with module "+t.wanted.module.Name()).Send(recorder)
	case t.decision.repair && t.changed:
		driftRepaired(t.machine).Send(recorder)
	case t.renews:
		succeeded(runs.Update, t.machine, "Brought the instance to module "+t.wanted.module.Reference()).Send(recorder)
	case t.changed:
		succeeded(runs.Update, t.machine, "Changed the instance in place").Send(recorder)
	}
	return nil
}

// waiting makes an outcome that is to be looked at again later one that says when.
func (t *task) waiting(outcome error) error {
	open, ok := errors.AsType[*undecidedError](outcome)
	if !ok {
		return outcome
	}
	return actuators.InProgress(max(shortest, open.until.Sub(t.actuator.clock.Now())), "%s", open.Error())
}

// toldDrift tells what a drift check found, and counts it.
func (t *task) toldDrift(outcome error) {
	ignored := driftOf(t.machine).policy == v1alpha1.DriftIgnore // the check was made for something else
	if t.found != nil && (t.found.Verdict == verdictMissing || t.found.Verdict == verdictChanged && !ignored) {
		driftFound(t.machine, *t.found).Send(t.actuator.recorder)
	}
	found := t.found
	if outcome != nil {
		found = nil
	}
	if t.found != nil || outcome != nil {
		t.actuator.metrics.checked(t.wanted.engine(), found)
	}
}

// refused reports whether an outcome is a change that was not let through.
func refused(outcome error) bool {
	failed, ok := errors.AsType[*actuators.MachineError](outcome)
	return ok && failed.Reason == machinev1beta1.UnsupportedChangeMachineError
}
