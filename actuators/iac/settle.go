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
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// maxMessage bounds what is recorded of a failure.
const maxMessage = 2 << 10

// Settle implements runs.Task: a state that the engine could not save is saved, then one write clears intent and lock and records
// the outcome. The intent stays where nobody knows what the engine did.
func (t *task) Settle(ctx context.Context, outcome error) error {
	if err := t.save(ctx); err != nil {
		return runs.NotSettled(fmt.Errorf("saving the state that the engine could not save: %w", errors.Join(err, outcome)))
	}
	if outcome == nil && t.decision.Operation == runs.Destroy {
		t.keepOutput(ctx)
		return t.gone(ctx)
	}
	if outcome == nil && (t.decision.Operation == runs.Update && !t.decision.Lookup || t.facts.Inputs == nil && t.decision.Operation != runs.Create) {
		if err := t.session.Attach(ctx, t.attachments()); err != nil {
			return runs.NotSettled(fmt.Errorf("recording the inputs: %w", err))
		}
	}
	t.keepOutput(ctx)
	settled := t.outcome(outcome)
	settled.SetLastRun(t.ended(outcome))
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
	if t.facts.HasResources() || t.imported {
		succeeded(runs.Destroy, t.machine, "Deleted the instance").Send(t.actuator.recorder)
	}
	return nil
}

// destroyed writes on the Machine that its instance is gone. A Machine without a witness has had none.
func (t *task) destroyed(ctx context.Context) error {
	if t.facts.Gone || t.facts.Witness == nil && !t.facts.Provisioned {
		return nil
	}
	now := t.actuator.clock.Now().UTC()
	w := lifecycle.Witness{UID: string(t.uid), Run: t.id, Since: now, Destroyed: &now}
	err := t.actuator.testify(ctx, t.machine, w)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // the Machine is gone, or another has its name
	}
	return err
}

// failed gives the lock back after a destroy that could not be concluded.
func (t *task) failed(ctx context.Context, err error) error {
	p := lifecycle.NewPatch()
	p.SetLastRun(t.ended(err))
	return typed(runs.Destroy, errors.Join(err, t.session.Release(ctx, p.MetaPatch)))
}

// ended returns what to tell people of the run.
func (t *task) ended(outcome error) lifecycle.LastRun {
	lock := t.session.Lock()
	last := lifecycle.LastRun{
		Operation: t.decision.Operation, Run: t.id, Began: lock.Since.UTC(), Ended: t.actuator.clock.Now().UTC(), Result: lifecycle.RunSucceeded, Reason: t.decision.Reason,
	}
	switch _, open := errors.AsType[*undecidedError](outcome); {
	case outcome == nil:
		return last
	case open:
		last.Result = lifecycle.RunUndecided
	case errors.Is(outcome, runs.ErrStopping):
		last.Result = lifecycle.RunInterrupted
	default:
		last.Result = lifecycle.RunFailed
	}
	last.Message = strings.ToValidUTF8(typed(t.decision.Operation, outcome).Message, "")
	if len(last.Message) > maxMessage {
		last.Message = strings.ToValidUTF8(last.Message[:maxMessage], "") + "..."
	}
	return last
}

// outcome returns what to record.
func (t *task) outcome(outcome error) lifecycle.Patch {
	p := lifecycle.NewPatch()
	if t.decision.Operation == runs.Drift {
		return t.checkedDrift(p, outcome)
	}
	t.settleIntent(p, outcome)
	if outcome == nil {
		p.SetApplied(t.wanted.Fingerprint, t.wanted.Module.Reference())
		p.SetPlace(t.wanted.Place)
	}
	if outcome == nil && t.renews {
		p.ClearModuleRefusal()
	}
	switch {
	case t.found != nil:
		p.SetCheck(*t.found)
	case outcome == nil:
		p.SetCheck(*t.dated(lifecycle.DriftCheck{Result: lifecycle.DriftNone}))
	}
	if outcome == nil && t.decision.Operation == runs.Create && t.decision.Lookup && !t.imported {
		at := t.actuator.clock.Now().Add(t.wanted.Module.Settle())
		p.SetSecondLook(&at)
	}
	t.refusedOrRepaired(p, outcome)
	return p
}

func (t *task) checkedDrift(p lifecycle.Patch, outcome error) lifecycle.Patch {
	if outcome == nil && t.decision.Lookup {
		p.SetSecondLook(nil)
	}
	if outcome == nil && t.found != nil {
		p.SetCheck(*t.found)
		if t.found.Result == lifecycle.DriftNone && t.facts.Record.Repair != nil {
			p.ClearRepair()
		}
	}
	if outcome == nil && t.facts.Record.Place == nil {
		p.SetPlace(t.wanted.Place)
	}
	return p
}

// settleIntent clears the intent, or leaves it with what is known by now of the run that may have made an instance.
func (t *task) settleIntent(p lifecycle.Patch, outcome error) {
	if _, open := errors.AsType[*undecidedError](outcome); open && t.decision.Lookup {
		left := *t.intent
		left.Looked = true
		p.SetIntent(left)
		return
	}
	if !t.doubtful(outcome) {
		p.ClearIntent()
		return
	}
	if t.decision.Operation != runs.Create || !t.mayHaveMade(outcome) {
		return // it has made nothing: what is recorded stays true
	}
	left := *t.intent
	left.Lost, left.Died, left.Looked = t.id, t.actuator.clock.Now().UTC(), false
	p.SetIntent(left)
}

// refusedOrRepaired records that a change was not let through, so that it is not planned again and again, and the same of repairs.
func (t *task) refusedOrRepaired(p lifecycle.Patch, outcome error) {
	if outcome != nil && !refused(outcome) {
		return
	}
	var message string
	if outcome != nil {
		message = typed(t.decision.Operation, outcome).Message
	}
	r := lifecycle.Refusal{Fingerprint: t.wanted.Fingerprint, Message: message}
	switch {
	case t.decision.Repair:
		p.SetRepair(t.facts.Record.Repair.Next(t.actuator.clock.Now(), message))
	case outcome == nil:
	case t.renews:
		p.SetModuleRefusal(r)
	default:
		p.SetRefusal(r)
	}
}

// doubtful reports whether a run that failed may have left something that the state lacks, or was to find out what an earlier run has left
// and did not.
func (t *task) doubtful(outcome error) bool {
	if outcome == nil {
		return false
	}
	return t.mayHaveMade(outcome) || t.intent.Lost != "" && !t.lookedUp && !t.facts.ConfirmedAbsent()
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
	if t.decision.Operation == runs.Drift && !quiet {
		t.toldDrift(outcome)
	}
	if t.decision.Repair && !quiet {
		t.actuator.metrics.repaired(engineOf(t.wanted), outcome, t.changed)
	}
	if outcome != nil {
		if !quiet {
			t.actuator.reportFailure(t.decision.Operation, t.machine, outcome)
		}
		return asMachineError(t.decision.Operation, t.waiting(outcome))
	}
	switch {
	case t.imported:
		succeeded(t.decision.Operation, t.machine, "Found the instance of run "+t.intent.Lost+" and took it into the state").Send(recorder)
	case t.decision.Operation == runs.Create:
		succeeded(runs.Create, t.machine, "Created the instance with module "+t.wanted.Module.Name()).Send(recorder)
	case t.decision.Repair && t.changed:
		driftRepaired(t.machine).Send(recorder)
	case t.renews:
		succeeded(runs.Update, t.machine, "Brought the instance to module "+t.wanted.Module.Reference()).Send(recorder)
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
	return actuators.InProgress(max(minRequeue, open.until.Sub(t.actuator.clock.Now())), "%s", open.Error())
}

// toldDrift tells what a drift check found, and counts it.
func (t *task) toldDrift(outcome error) {
	ignored := lifecycle.DriftOf(t.machine).Policy == v1alpha1.DriftIgnore // the check was made for something else
	if t.found != nil && (t.found.Result == lifecycle.DriftMissing || t.found.Result == lifecycle.DriftChanged && !ignored) {
		driftFound(t.machine, *t.found).Send(t.actuator.recorder)
	}
	found := t.found
	if outcome != nil {
		found = nil
	}
	if t.found != nil || outcome != nil {
		t.actuator.metrics.checked(engineOf(t.wanted), found)
	}
}

// refused reports whether an outcome is a change that was not let through.
func refused(outcome error) bool {
	failed, ok := errors.AsType[*actuators.MachineError](outcome)
	return ok && failed.Reason == machinev1beta1.UnsupportedChangeMachineError
}

// attachments answers what a run keeps with the state of what it was asked for. Inputs that have no room are not kept, nor are older ones.
func (t *task) attachments() state.Attachments {
	packed, err := t.wanted.PackInputs()
	if err != nil || packed == nil {
		t.actuator.logger.Info("The inputs of a Machine are not kept with its state; it can be deleted only while its providerSpec can be used",
			"Machine", t.machine.Namespace+"/"+t.machine.Name, "error", err)
		return state.Attachments{lifecycle.InputsAttachment: nil}
	}
	attached := state.Attachments{lifecycle.InputsAttachment: packed}
	if len(packed) > state.MaxAttachmentBytes-maxPackedTranscript {
		attached[attachedOutput] = nil
	}
	return attached
}
