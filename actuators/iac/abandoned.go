package iac

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/machine-iac/machine-iac-operator/actuators/reporting"
	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

const (
	// recoveryTimeout bounds the recovery of one abandoned run.
	recoveryTimeout = time.Minute
	// recoveryInterval is how often the recovery of abandoned runs is tried again.
	recoveryInterval = 30 * time.Second
)

// abandonedRun is a run whose workspace was left behind, by a process that died or because its state could not be saved.
type abandonedRun struct {
	runner    runner.Runner
	abandoned runner.AbandonedRun
	identity  identity
}

// abandonedRuns are those that are not recovered yet, by the UID of their Machine.
type abandonedRuns struct {
	mu   sync.Mutex
	runs map[types.UID][]abandonedRun
}

func (l *abandonedRuns) of(uid types.UID) []abandonedRun {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.runs[uid]
}

func (l *abandonedRuns) machines() []types.UID {
	l.mu.Lock()
	defer l.mu.Unlock()
	uids := make([]types.UID, 0, len(l.runs))
	for uid := range l.runs {
		uids = append(uids, uid)
	}
	return uids
}

func (l *abandonedRuns) set(uid types.UID, left []abandonedRun) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(left) == 0 {
		delete(l.runs, uid)
		return
	}
	if l.runs == nil {
		l.runs = map[types.UID][]abandonedRun{}
	}
	l.runs[uid] = left
}

// keepAbandoned makes the Machine's next run begin with the state that this one could not save.
func (a *Actuator) keepAbandoned(t *task) error {
	with, known := a.runners[t.wanted.Module.Engine()]
	if !known {
		return nil
	}
	left, err := abandonedBy(with)
	if err != nil {
		return err
	}
	var own []abandonedRun
	for _, one := range left {
		if one.identity.UID == string(t.uid) {
			own = append(own, one)
		}
	}
	a.abandoned.set(t.uid, own)
	return nil
}

// abandonedBy lists the abandoned runs of one engine.
func abandonedBy(with runner.Runner) ([]abandonedRun, error) {
	left, err := with.AbandonedRuns()
	if err != nil {
		return nil, err
	}
	found := make([]abandonedRun, 0, len(left))
	for _, one := range left {
		run := abandonedRun{runner: with, abandoned: one}
		if raw := one.Identity(); len(raw) > 0 {
			if err := json.Unmarshal(raw, &run.identity); err != nil {
				return nil, fmt.Errorf("reading whose the abandoned run %s is: %w", one.ID(), err)
			}
		}
		found = append(found, run)
	}
	return found, nil
}

// findAbandoned lists the runs that an earlier process has left in the work folder. Workspaces in which nothing was run are removed.
func (a *Actuator) findAbandoned() {
	for _, name := range a.engines() {
		left, err := abandonedBy(a.runners[name])
		if err != nil {
			a.logger.Error(err, "Listing abandoned runs; they stay until the next start", "engine", name)
		}
		for _, one := range left {
			if one.identity.UID != "" {
				uid := types.UID(one.identity.UID)
				a.abandoned.set(uid, append(a.abandoned.of(uid), one))
			} else if err := one.runner.Discard(one.abandoned.ID()); err != nil {
				a.logger.Error(err, "Removing an abandoned run in which nothing was done", "run", one.abandoned.ID())
			}
		}
	}
}

// recoverAbandoned recovers abandoned runs until ctx ends. A Machine's next run would do so too, but not every Machine gets one.
func (a *Actuator) recoverAbandoned(ctx context.Context) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		for _, uid := range a.abandoned.machines() {
			if status, known := a.pool.Status(uid); known && status.Active() {
				continue // the run itself deals with it
			}
			if err := a.recoverOf(ctx, uid); err != nil && ctx.Err() == nil {
				a.logger.Error(err, "Recovering an abandoned run; it is tried again", "machine-uid", uid)
			}
		}
	}, recoveryInterval)
}

// recoverOf recovers the abandoned runs of a Machine. One that cannot be recovered yet prevents the Machine's next run.
func (a *Actuator) recoverOf(ctx context.Context, uid types.UID) error {
	if len(a.abandoned.of(uid)) == 0 {
		return nil
	}
	a.recovering.Lock()
	defer a.recovering.Unlock()
	for left := a.abandoned.of(uid); len(left) > 0; left = a.abandoned.of(uid) {
		one := left[0]
		ctx, cancel := context.WithTimeout(ctx, recoveryTimeout)
		err := a.recoverOne(ctx, one)
		cancel()
		if err != nil {
			return fmt.Errorf("saving the state that run %s could not save: %w", one.identity.Run, err)
		}
		if err := one.runner.Discard(one.abandoned.ID()); err != nil {
			return err
		}
		a.abandoned.set(uid, left[1:])
	}
	return nil
}

// recoverOne saves the state that an engine could not save. Where the stored one was not written since, it is replaced. Else it is
// dropped when the stored one knows every resource in it, and kept as an orphan when it does not: it may be all that is known of one.
func (a *Actuator) recoverOne(ctx context.Context, left abandonedRun) error {
	key := state.KeyFor(left.identity.Namespace, types.UID(left.identity.UID))
	stored, err := a.store.Get(ctx, key)
	if errors.Is(err, state.ErrNotFound) {
		stored, err = &state.Snapshot{Key: key}, nil
	}
	if err != nil {
		return err
	}
	holds := stored.Lock != nil && stored.Lock.Run == left.identity.Run
	unsaved, err := left.abandoned.Unsaved(stored.Raw, holds)
	if err != nil || unsaved == nil {
		return err
	}
	compared, err := statefile.Compare(stored.Raw, unsaved)
	if err != nil {
		return err
	}
	switch {
	case holds && (stored.Raw == nil || compared.Relation == statefile.RelationNewer):
		a.metrics.Unsaved(reporting.UnsavedSaved)
		return a.putUnsaved(ctx, key, left.identity, unsaved)
	case len(compared.Missing) == 0:
		a.metrics.Unsaved(reporting.UnsavedDropped)
		a.logger.Info("A state that an engine could not save has nothing that the stored one lacks; it is dropped", "state", key.String(), "relation", compared.Relation)
		return nil
	}
	a.metrics.Unsaved(reporting.UnsavedOrphaned)
	a.logger.Info("A state that an engine could not save has resources that the stored one lacks; it is kept as an orphan",
		"state", key.String(), "relation", compared.Relation, "resources", statefile.Names(compared.Missing))
	kept, err := a.store.SaveOrphan(ctx, key, unsaved, state.OrphanOptions{
		Machine: left.identity.Name, MachineUID: types.UID(left.identity.UID), Missing: compared.Missing, Attachments: stored.Attachments,
		Reason: fmt.Sprintf("run %s of manager %s could not save it, and the state was written by another since", left.identity.Run, left.identity.Owner),
	})
	if err != nil {
		return err
	}
	a.kept.add(kept.MachineUID, types.NamespacedName{Namespace: kept.Namespace, Name: kept.Name})
	return nil
}

// putUnsaved stores a state in place of the one that its run began with, and leaves the intent as it is.
func (a *Actuator) putUnsaved(ctx context.Context, key state.Key, who identity, unsaved []byte) error {
	session, err := a.acquire(ctx, key, state.AcquireOptions{
		Lock: state.Lock{Owner: a.owner, Run: who.Run + "-recovery", Operation: "recovery"},
		Decide: func(_ context.Context, now *state.Snapshot) (state.Change, error) {
			if now.Lock == nil || now.Lock.Run != who.Run {
				return state.Change{}, runs.ErrNothingToDo // another was faster; what it left is compared the next time
			}
			return state.Change{}, nil
		},
	})
	if err != nil {
		return err
	}
	return errors.Join(session.Put(ctx, unsaved), session.Release(ctx, nil))
}
