package iac

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/machine-iac/machine-iac-operator/actuators/reporting"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// maxMessage bounds what is recorded of a failure.
const maxMessage = 2 << 10

// Settle implements runs.Task: a state that the engine could not save is saved, then one write clears intent and lock and records
// the outcome. The intent stays where it is not known what the engine did.
func (t *task) Settle(ctx context.Context, outcome error) error {
	if errors.Is(outcome, runs.ErrAlone) {
		return t.giveBack(ctx)
	}
	if err := t.save(ctx); err != nil {
		return runs.NotSettled(fmt.Errorf("saving the state that the engine could not save: %w", errors.Join(err, outcome)))
	}
	if outcome == nil && (t.decision.Operation == runs.Destroy || t.absent) {
		t.keepOutput(ctx)
		return t.deleteState(ctx)
	}
	switch {
	case outcome == nil && t.decision.Release:
		return t.forgetState(ctx)
	case t.leavesForeign(outcome):
		return t.settleForeign(ctx, outcome)
	}
	if outcome == nil && t.keepsInputs() {
		if err := t.session.Attach(ctx, t.attachments()); err != nil {
			return runs.NotSettled(fmt.Errorf("recording the inputs: %w", err))
		}
	}
	t.keepOutput(ctx)
	settled := t.patchFor(outcome)
	settled.SetLastRun(t.lastRun(outcome))
	if err := t.session.Release(ctx, settled.MetaPatch); err != nil {
		return runs.NotSettled(fmt.Errorf("recording the outcome: %w", errors.Join(err, outcome)))
	}
	return t.report(outcome)
}

// keepsInputs reports whether a run that succeeded has its inputs kept with the state. Those of a create are kept with its intent, and those of an
// adoption too, but an earlier try may have had others.
func (t *task) keepsInputs() bool {
	return t.decision.Operation == runs.Update && (!t.decision.Lookup || t.decision.Adopt) || t.facts.Inputs == nil && t.decision.Operation != runs.Create
}

// save stores a state that the engine could not save. While that fails its workspace stays, and so do the lock and the intent: the Machine's
// next run begins with saving it.
func (t *task) save(ctx context.Context) error {
	if t.unsaved == nil {
		return nil
	}
	kept := t.unsaved
	if err := kept.Save(ctx); err != nil {
		return errors.Join(err, kept.Keep(), t.actuator.recovery.Keep(t.wanted.Module.Engine(), t.uid))
	}
	t.unsaved = nil
	return kept.Close()
}

// deleteState deletes a state whose instance is destroyed, once the Machine says so too: a manager that dies between the two must not look for
// the instance again. Should the state list resources still, it stays and the destroy has failed.
func (t *task) deleteState(ctx context.Context) error {
	if err := t.markDestroyed(ctx); err != nil {
		return t.releaseFailed(ctx, err)
	}
	if err := t.session.Delete(ctx); err != nil {
		return t.releaseFailed(ctx, err)
	}
	switch {
	case t.absent:
		reporting.Succeeded(runs.Destroy, t.machine, "Deleted nothing: "+t.adoption.Refused).Send(t.actuator.recorder)
	case t.facts.HasResources() || t.imported:
		reporting.Succeeded(runs.Destroy, t.machine, "Deleted the instance").Send(t.actuator.recorder)
	}
	t.reportLeftBehind()
	return nil
}

// markDestroyed writes on the Machine that its instance is gone. A Machine without a witness has had none, unless it names one.
func (t *task) markDestroyed(ctx context.Context) error {
	if t.facts.Gone || t.facts.Witness == nil && !t.facts.Provisioned && !t.absent {
		return nil
	}
	now := t.actuator.clock.Now().UTC()
	w := record.Witness{UID: string(t.uid), Run: t.id, Since: now, Destroyed: &now}
	err := t.actuator.writeWitness(ctx, t.machine, w)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // the Machine is gone, or another has its name
	}
	return err
}

// releaseFailed gives the lock back after a destroy that could not be concluded.
func (t *task) releaseFailed(ctx context.Context, err error) error {
	p := record.NewPatch()
	p.SetLastRun(t.lastRun(err))
	return reporting.Typed(runs.Destroy, errors.Join(err, t.session.Release(ctx, p.MetaPatch)))
}

// lastRun returns what to record of the run, for people.
func (t *task) lastRun(outcome error) record.LastRun {
	lock := t.session.Lock()
	last := record.LastRun{
		Operation: t.decision.Operation, Run: t.id, Began: lock.Since.UTC(), Ended: t.actuator.clock.Now().UTC(), Result: record.RunSucceeded, Reason: t.decision.Reason,
	}
	switch _, open := errors.AsType[*undecidedError](outcome); {
	case outcome == nil:
		return last
	case open:
		last.Result = record.RunUndecided
	case runs.Interrupted(outcome):
		last.Result = record.RunInterrupted
	default:
		last.Result = record.RunFailed
	}
	last.Message = strings.ToValidUTF8(reporting.Typed(t.decision.Operation, outcome).Message, "")
	if len(last.Message) > maxMessage {
		last.Message = strings.ToValidUTF8(last.Message[:maxMessage], "") + "..."
	}
	return last
}

// patchFor returns what to record.
func (t *task) patchFor(outcome error) record.Patch {
	p := record.NewPatch()
	if t.decision.Operation == runs.Drift {
		return t.patchForDrift(p, outcome)
	}
	t.settleIntent(p, outcome)
	if outcome == nil {
		p.SetApplied(t.wanted.Fingerprint, t.wanted.Module.Reference())
		p.SetPlace(t.wanted.Place)
	}
	if outcome == nil && t.changesModule {
		p.ClearModuleRefusal()
	}
	if outcome == nil && t.facts.Record.AdoptionPlan != nil {
		p.ClearAdoptionPlan()
	}
	switch {
	case t.found != nil:
		p.SetCheck(*t.found)
	case outcome == nil:
		p.SetCheck(*t.checkedNow(record.DriftCheck{Result: record.DriftNone}))
	}
	if outcome == nil && t.decision.Operation == runs.Create && t.decision.Lookup && !t.imported {
		at := t.actuator.clock.Now().Add(t.wanted.Module.Settle())
		p.SetSecondLook(&at)
	}
	t.setRefusalOrRepair(p, outcome)
	return p
}

func (t *task) patchForDrift(p record.Patch, outcome error) record.Patch {
	if outcome == nil && t.decision.Lookup {
		p.SetSecondLook(nil)
	}
	if outcome == nil && t.found != nil {
		p.SetCheck(*t.found)
		if t.found.Result == record.DriftNone && t.facts.Record.Repair != nil {
			p.ClearRepair()
		}
	}
	if outcome == nil && t.facts.Record.Place == nil {
		p.SetPlace(t.wanted.Place)
	}
	return p
}

// settleIntent clears the intent, or leaves it with what is known by now of the run that may have made an instance.
func (t *task) settleIntent(p record.Patch, outcome error) {
	if _, open := errors.AsType[*undecidedError](outcome); open && t.decision.Lookup {
		left := *t.intent
		left.Looked = true
		p.SetIntent(left)
		return
	}
	if !t.mayHaveLeft(outcome) {
		p.ClearIntent()
		return
	}
	if t.decision.Operation != runs.Create || !t.mayHaveMade(outcome) {
		return // it has made nothing: what is recorded stays true
	}
	left := *t.intent
	left.Abandoned, left.Died, left.Looked = t.id, t.actuator.clock.Now().UTC(), false
	p.SetIntent(left)
}

// setRefusalOrRepair records that a change was refused, so that it is not planned again and again, and the same of repairs.
func (t *task) setRefusalOrRepair(p record.Patch, outcome error) {
	if outcome != nil && !reporting.IsRefused(outcome) {
		return
	}
	var message string
	if outcome != nil {
		message = reporting.Typed(t.decision.Operation, outcome).Message
	}
	r := record.Refusal{Fingerprint: t.wanted.Fingerprint, Message: message}
	switch {
	case t.decision.Repair:
		p.SetRepair(t.facts.Record.Repair.Next(t.actuator.clock.Now(), message))
	case outcome == nil:
	case t.changesModule:
		p.SetModuleRefusal(r)
	default:
		p.SetRefusal(r)
	}
}

// mayHaveLeft reports whether a run that failed may have left something that the state lacks, or was to find out what an earlier run has left
// and did not.
func (t *task) mayHaveLeft(outcome error) bool {
	if outcome == nil {
		return false
	}
	return t.mayHaveMade(outcome) || t.intent.Abandoned != "" && !t.lookedUp && !t.facts.ConfirmedAbsent()
}

// mayHaveMade reports whether the engine may have made something that the state lacks: it was killed, or it was interrupted or failed while
// it made something, of which the response may be lost. A response that refuses is not lost.
func (t *task) mayHaveMade(outcome error) bool {
	if failure.ClassOf(outcome) == failure.Killed {
		return t.touched
	}
	return len(t.making) > 0 && !t.refused(outcome)
}

// refused reports whether each error of a run is the infrastructure's refusal to make something.
func (t *task) refused(outcome error) bool {
	failed, ok := errors.AsType[*failure.Error](outcome)
	if !ok {
		return false
	}
	if len(failed.Diagnostics) == 0 {
		return t.refuses(failed.Class)
	}
	return !slices.ContainsFunc(failed.Diagnostics, func(one failure.Diagnostic) bool {
		return !t.refuses(failure.Classify([]failure.Diagnostic{one}, t.wanted.Module.Final))
	})
}

// refuses reports whether an error of a class says that nothing was made. Wrong credentials and too many requests may come in the way of a request
// after the one that made something, and providers forget what they made when they fail then; this is looked up where it can be. Without a
// lookup somebody would have to look, whenever a credential expires.
func (t *task) refuses(class failure.Class) bool {
	switch class {
	case failure.InvalidConfiguration, failure.Quota:
		return true
	case failure.Credentials, failure.Throttled:
		return t.wanted.Module.Spec().Lookup == nil
	default:
		return false
	}
}

// attachments returns the inputs of the run as they are stored with the state. Inputs that are too large are not stored, and older ones are removed.
func (t *task) attachments() state.Attachments {
	packed, err := t.wanted.PackInputs()
	if err != nil || packed == nil {
		t.actuator.logger.Info("The inputs of a Machine are not kept with its state; it can be deleted only while its providerSpec can be used",
			"Machine", t.machine.Namespace+"/"+t.machine.Name, "error", err)
		return state.Attachments{lifecycle.InputsAttachment: nil}
	}
	attached := state.Attachments{lifecycle.InputsAttachment: packed}
	if len(packed) > state.MaxAttachmentBytes-reporting.MaxPackedTranscript-reporting.MaxPackedWithheld {
		attached[reporting.OutputAttachment], attached[reporting.WithheldAttachment] = nil, nil
	}
	return attached
}
