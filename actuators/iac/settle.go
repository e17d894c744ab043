package iac

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/machine-iac/machine-iac-operator/actuators/reporting"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// Settle implements runs.Task. It saves a state that the engine failed to save. One write then
// clears intent and lock and records the outcome. The intent remains if the engine's effects are
// unknown.
func (t *task) Settle(ctx context.Context, outcome error) error {
	if errors.Is(outcome, runs.ErrAlone) {
		return t.giveBack(ctx)
	}
	if err := t.save(ctx); err != nil {
		return runs.NotSettled(fmt.Errorf("saving the state after the engine failed to: %w", errors.Join(err, outcome)))
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

// keepsInputs reports whether a successful run stores its inputs with the state. Creates and
// adoptions have stored them with the intent, but an adoption's earlier attempt may have had
// others.
func (t *task) keepsInputs() bool {
	if t.beside {
		return false // the run used the stored inputs
	}
	return t.decision.Operation == runs.Update && (!t.decision.Lookup || t.decision.Adopt) || t.facts.Inputs == nil &&
		t.decision.Operation != runs.Create
}

// save stores a state that the engine failed to save. On failure the workspace, lock and intent
// remain, and the Machine's next run saves the state first.
func (t *task) save(ctx context.Context) error {
	if t.unsaved == nil {
		return nil
	}
	kept := t.unsaved
	if err := kept.Save(ctx); err != nil {
		return errors.Join(err, kept.Keep(), t.actuator.recovery.Keep(t.wanted.Module.Engine(), t.uid))
	}
	t.unsaved, t.saved = nil, true
	return kept.Close()
}

// deleteState deletes the state of a destroyed instance after marking the Machine. In the other
// order, a crash in between would trigger a lookup of the instance. If the state still lists
// resources, it stays and the destroy fails.
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
	case t.facts.HasInstance() || t.facts.HalfMade() || t.imported:
		reporting.Succeeded(runs.Destroy, t.machine, "Deleted the instance").Send(t.actuator.recorder)
	case t.facts.HasResources():
		reporting.Succeeded(runs.Destroy, t.machine, "Deleted what was created before the instance").Send(t.actuator.recorder)
	}
	t.reportLeftBehind()
	return nil
}

// markDestroyed records on the Machine that its instance is gone. A Machine without a witness never
// had one, unless it refers to one.
func (t *task) markDestroyed(ctx context.Context) error {
	if t.facts.Gone || t.facts.Witness == nil && !t.facts.Provisioned && !t.absent {
		return nil
	}
	now := t.actuator.clock.Now().UTC()
	w := record.Witness{Run: t.id, Since: now, Destroyed: &now}
	err := t.actuator.writeWitness(ctx, t.machine, w)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // the Machine is gone or was replaced
	}
	return err
}

// releaseFailed releases the lock after a destroy that could not be concluded.
func (t *task) releaseFailed(ctx context.Context, err error) error {
	p := record.NewPatch()
	p.SetLastRun(t.lastRun(err))
	return reporting.Typed(runs.Destroy, errors.Join(err, t.session.Release(ctx, p.MetaPatch)))
}

// lastRun returns the record of the run, for people.
func (t *task) lastRun(outcome error) record.LastRun {
	lock := t.session.Lock()
	last := record.LastRun{
		Operation: t.decision.Operation, Run: t.id, Began: lock.Since.UTC(), Ended: t.actuator.clock.Now().UTC(),
		Result: record.RunSucceeded, Reason: t.decision.Reason,
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
	last.Message = reporting.Typed(t.decision.Operation, outcome).Message
	return last
}

// patchFor returns the record of the outcome.
func (t *task) patchFor(outcome error) record.Patch {
	p := record.NewPatch()
	t.providers.Record(p, t.facts.Record.Providers, outcome == nil && t.decision.Operation != runs.Drift)
	if t.decision.Operation == runs.Drift {
		return t.patchForDrift(p, outcome)
	}
	t.settleIntent(p, outcome)
	if outcome == nil && !t.beside {
		p.SetApplied(cmp.Or(t.wanted.Renewed, t.wanted.Fingerprint), t.wanted.Module.Reference())
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
	if outcome == nil && t.wanted.Renewed != "" {
		p.SetFingerprint(t.wanted.Renewed)
	}
	return p
}

// settleIntent clears the intent, or updates it with what is known about the run that may have
// created an instance.
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
		return // it created nothing, so the record stays true
	}
	left := *t.intent
	left.Abandoned, left.Died, left.Looked = t.id, t.actuator.clock.Now().UTC(), false
	p.SetIntent(left)
}

// setRefusalOrRepair records a refused change or repair, so that it is not planned again and again.
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

// mayHaveLeft reports whether a failed run may have left something that the state lacks, or failed
// to find out what an earlier run left.
func (t *task) mayHaveLeft(outcome error) bool {
	if outcome == nil {
		return false
	}
	return t.mayHaveMade(outcome) || t.intent.Abandoned != "" && !t.lookedUp && !t.facts.ConfirmedAbsent()
}

// mayHaveMade reports whether the engine may have created something that the state lacks: it was
// killed, it left no readable state, or it lost a response because it was interrupted or failed
// during a create. A refusal is a response.
func (t *task) mayHaveMade(outcome error) bool {
	if class := failure.ClassOf(outcome); class == failure.Killed || class == failure.StateNotSaved && !t.saved {
		return t.touched
	}
	return len(t.making) > 0 && !t.refused(outcome)
}

// refused reports whether every error of a run is the infrastructure refusing to create something.
func (t *task) refused(outcome error) bool {
	failed, ok := errors.AsType[*failure.Error](outcome)
	if !ok {
		return false
	}
	if len(failed.Diagnostics) == 0 {
		return t.refuses(failed.Class)
	}
	return !slices.ContainsFunc(failed.Diagnostics, func(one failure.Diagnostic) bool {
		class := failure.Classify([]failure.Diagnostic{one}, t.wanted.Module.Final)
		return (!t.refuses(class) || one.LostResponse()) && !t.wanted.Module.NothingMade(one.Text())
	})
}

// refuses reports whether an error class proves that nothing was created. Bad credentials or
// throttling may hit a request after the one that created something, and providers forget their
// creation then. With a lookup, such failures are looked up. Without one, an expired credential
// would force people to search by hand.
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

// attachments returns the run's inputs in stored form. Inputs that are too large are not stored,
// and older ones are removed.
func (t *task) attachments() state.Attachments {
	packed, err := t.wanted.PackInputs()
	if err != nil || packed == nil {
		t.actuator.logger.Info("Not keeping a Machine's inputs with its state; deleting it will need a valid providerSpec",
			"Machine", t.machine.Namespace+"/"+t.machine.Name, "error", err)
		return state.Attachments{lifecycle.InputsAttachment: nil}
	}
	attached := state.Attachments{lifecycle.InputsAttachment: packed}
	if len(packed) > state.MaxAttachmentBytes-reporting.MaxPackedTranscript-reporting.MaxPackedWithheld {
		attached[reporting.OutputAttachment], attached[reporting.WithheldAttachment] = nil, nil
	}
	return attached
}
