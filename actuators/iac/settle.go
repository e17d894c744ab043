package iac

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/machine-iac/machine-iac-operator/actuators"
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
	return t.does.settle(ctx, outcome)
}

// giveBack releases the lock, and keeps the intent if the run's effects are unknown.
func (t *task) giveBack(ctx context.Context) error {
	p := record.NewPatch()
	if t.intent != nil {
		t.settleIntent(p, runs.ErrAlone)
	}
	if err := t.session.Release(ctx, p.MetaPatch); err != nil {
		return runs.NotSettled(errors.Join(errors.New("releasing the lock"), err))
	}
	return runs.ErrAlone
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

// storeInputs stores a run's inputs with the state. Creates and adoptions have stored them with the
// intent, but an adoption's earlier attempt may have had others.
func (t *task) storeInputs(ctx context.Context) error {
	if err := t.session.Attach(ctx, t.attachments()); err != nil {
		return runs.NotSettled(fmt.Errorf("recording the inputs: %w", err))
	}
	return nil
}

// conclude stores the engine's output, records the outcome and releases the lock. It reports a
// failure and returns its typed error.
func (t *task) conclude(ctx context.Context, p record.Patch, outcome error) error {
	t.keepOutput(ctx)
	p.SetLastRun(t.lastRun(outcome))
	if err := t.session.Release(ctx, p.MetaPatch); err != nil {
		return runs.NotSettled(fmt.Errorf("recording the outcome: %w", errors.Join(err, outcome)))
	}
	if outcome == nil {
		return nil
	}
	t.reportFailure(outcome)
	if open, ok := errors.AsType[*undecidedError](outcome); ok {
		outcome = actuators.InProgress(max(minRequeue, open.until.Sub(t.actuator.clock.Now())), "%s", open.Error())
	}
	err := reporting.AsMachineError(t.decision.Operation, outcome)
	if awaitsProvider(outcome) {
		return runs.RetrySoon(err)
	}
	return err
}

// reportFailure sends the event of a failed run and counts it, unless it was interrupted or has to
// look again.
func (t *task) reportFailure(outcome error) {
	if _, open := errors.AsType[*undecidedError](outcome); open || runs.Interrupted(outcome) {
		return
	}
	switch {
	case t.decision.Repair:
		t.actuator.metrics.Repaired(engineOf(t.wanted), outcome, t.changed)
	case t.decision.Operation == runs.Drift:
		t.reportDrift(outcome)
	}
	reporting.Failure(t.actuator.recorder, t.actuator.metrics, t.decision.Operation, t.machine, outcome)
}

// awaitsProvider reports whether a run failed before it started an engine, or because the provider
// mirror lacks a provider. Someone may add it at any time. Any other initialization failure, such
// as an error in the module, costs a process per attempt and gets the full backoff.
func awaitsProvider(err error) bool {
	failed, ok := errors.AsType[*failure.Error](err)
	if !ok || failed.Op != failure.OpInit {
		return false
	}
	return failed.Class == failure.ProviderNotInstalled || failed.Class == failure.Unknown && len(failed.Diagnostics) == 0
}

// keepOutput stores the engine's output with the state, in the write that settles the run.
func (t *task) keepOutput(ctx context.Context) {
	if err := reporting.KeepOutput(ctx, t.session, &t.transcript, &t.withheld); err != nil {
		t.actuator.logger.V(1).Info("The engine's output is kept incomplete", "Machine", t.key.String(), "reason",
			err.Error())
	}
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
	t.providers.Record(p, t.facts.Record.Providers, outcome == nil)
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
	t.setRefusalOrRepair(p, outcome)
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
