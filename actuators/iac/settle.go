package iac

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// Settle implements runs.Task: a state that the engine could not save is saved, then one write clears intent and lock and records
// the outcome. The intent stays where nobody knows what the engine did.
func (t *task) Settle(ctx context.Context, outcome error) error {
	if err := t.save(ctx); err != nil {
		return fmt.Errorf("saving the state that the engine could not save: %w", errors.Join(err, outcome))
	}
	if outcome == nil && t.decision.operation == runs.Destroy {
		t.keepOutput(ctx)
		return t.gone(ctx)
	}
	if outcome == nil && (t.decision.operation == runs.Update || t.remembers) {
		if err := t.session.Attach(ctx, t.attachments()); err != nil {
			return fmt.Errorf("recording the inputs: %w", err)
		}
	}
	t.keepOutput(ctx)
	settled := t.outcome(outcome)
	settled.ended(t.ended(outcome))
	if err := t.session.Release(ctx, settled.MetaPatch); err != nil {
		return fmt.Errorf("recording the outcome: %w", errors.Join(err, outcome))
	}
	return t.told(outcome)
}

// save stores a state that the engine could not save. While that fails its folder stays, for the recovery at the next start, and so
// does the lock.
func (t *task) save(ctx context.Context) error {
	if t.kept == nil {
		return nil
	}
	kept := t.kept
	if err := kept.Save(ctx); err != nil {
		return errors.Join(err, kept.Keep())
	}
	t.kept = nil
	return kept.Close()
}

// gone deletes a state whose instance is destroyed. Should it list resources still, it stays and the destroy has failed.
func (t *task) gone(ctx context.Context) error {
	if err := t.session.Delete(ctx); err != nil {
		told := newPatch()
		told.ended(t.ended(err))
		return typed(runs.Destroy, errors.Join(err, t.session.Release(ctx, told.MetaPatch)))
	}
	if !t.empty {
		succeeded(runs.Destroy, t.machine, "Deleted the instance").Send(t.actuator.recorder)
	}
	return nil
}

// ended answers what to tell people of the run.
func (t *task) ended(outcome error) ended {
	lock := t.session.Lock()
	told := ended{Operation: t.decision.operation, Run: t.id, Began: lock.Since.UTC(), Ended: t.actuator.clock.Now().UTC(), Result: endedWell}
	switch {
	case outcome == nil:
		return told
	case errors.Is(outcome, runs.ErrStopping):
		told.Result = endedEarly
	default:
		told.Result = endedBadly
	}
	told.Message = strings.ToValidUTF8(typed(t.decision.operation, outcome).Message, "")
	if len(told.Message) > maxMessage {
		told.Message = strings.ToValidUTF8(told.Message[:maxMessage], "") + "..."
	}
	return told
}

// outcome answers what to record.
func (t *task) outcome(outcome error) patch {
	p := newPatch()
	if t.decision.operation == runs.Drift {
		if outcome == nil {
			p.checked(*t.found)
		}
		if outcome == nil && t.found.Verdict == verdictNone && t.repaired != nil {
			p.unrepaired()
		}
		return p
	}
	if !t.doubtful(outcome) {
		p.settled()
	}
	if outcome == nil {
		p.reached(t.wanted.fingerprint, t.wanted.module.Reference())
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
	t.refusedOrRepaired(p, outcome)
	return p
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
		p.repaired(t.repaired.next(t.actuator.clock.Now(), message))
	case outcome == nil:
	case t.renews:
		p.refusedRenewal(r)
	default:
		p.refused(r)
	}
}

// doubtful reports whether a run that failed may have left an instance that the state lacks: its engine was killed, or failed or was
// interrupted while it made the instance, or it was to find out what an earlier run has left and did not.
func (t *task) doubtful(outcome error) bool {
	if outcome == nil {
		return false
	}
	return engine.ClassOf(outcome) == engine.Killed || t.making || t.decision.lookup && !t.lookedUp
}

// told sends the events of an outcome and answers its typed error.
func (t *task) told(outcome error) error {
	recorder := t.actuator.recorder
	stopping := errors.Is(outcome, runs.ErrStopping)
	if t.decision.operation == runs.Drift && !stopping {
		t.toldDrift(outcome)
	}
	if t.decision.repair && !stopping {
		t.actuator.metrics.repaired(t.wanted.engine(), outcome, t.changed)
	}
	if outcome != nil {
		if !stopping {
			t.actuator.failed(t.decision.operation, t.machine, outcome)
		}
		return typed(t.decision.operation, outcome)
	}
	switch {
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
	t.actuator.metrics.checked(t.wanted.engine(), found)
}

// recoverLeftover saves the state that an engine of a dead predecessor could not save. A Secret that is gone was deleted after a
// destroy that is proven, perhaps by a run that looked the instance up: it is not made again.
func (a *Actuator) recoverLeftover(ctx context.Context, found runner.Leftover, who identity) error {
	key := state.KeyFor(who.Namespace, uidOf(who))
	stored, err := a.store.Get(ctx, key)
	gone := errors.Is(err, state.ErrNotFound)
	if gone {
		stored, err = &state.Snapshot{}, nil
	}
	if err != nil {
		return err
	}
	unsaved, err := found.Unsaved(stored.Raw, stored.Lock != nil && stored.Lock.Run == who.Run)
	if err != nil || unsaved == nil {
		return err
	}
	if gone {
		a.logger.Info("A state that an engine could not save is of a Machine whose state is gone; it is dropped", "state", key.String())
		return nil
	}
	session, err := a.acquire(ctx, key, state.AcquireOptions{
		Lock: state.Lock{Owner: a.owner, Run: who.Run + "-recovery", Operation: "recovery"},
	})
	if err != nil {
		return err
	}
	err = session.Put(ctx, unsaved)
	if refusedState, ok := errors.AsType[*state.RefusedError](err); ok {
		a.logger.Info("A state that an engine could not save is older than the one that is stored; it is dropped", "state", key.String(), "reason", refusedState.Error())
		err = nil
	}
	return errors.Join(err, session.Release(ctx, nil))
}
