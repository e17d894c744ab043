package recovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/machine-iac/machine-iac-operator/actuators/reporting"
	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

const (
	// recoveryTimeout bounds the recovery of one abandoned run.
	recoveryTimeout = time.Minute
	// recoveryInterval is how often the recovery of abandoned runs is retried.
	recoveryInterval = 30 * time.Second
)

// abandonedRun is a run whose workspace was left behind by a dead process, or because its state
// could not be saved.
type abandonedRun struct {
	runner    runner.Runner
	abandoned runner.AbandonedRun
	identity  Identity
}

// abandonedRuns holds the runs still to be recovered, by the UID of their Machine.
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

// Keep makes a Machine's next run begin with the state that its last run with an engine failed to
// save.
func (r *Recovery) Keep(engine v1alpha1.Engine, uid types.UID) error {
	with, known := r.options.Runners[engine]
	if !known {
		return nil
	}
	left, err := abandonedBy(with)
	if err != nil {
		return err
	}
	var own []abandonedRun
	for _, one := range left {
		if one.identity.UID == string(uid) {
			own = append(own, one)
		}
	}
	r.abandoned.set(uid, own)
	return nil
}

// abandonedBy lists an engine's abandoned runs.
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
				return nil, fmt.Errorf("reading the identity of abandoned run %s: %w", one.ID(), err)
			}
		}
		found = append(found, run)
	}
	return found, nil
}

// Find lists the runs that an earlier process left in the work folder. It removes empty workspaces.
func (r *Recovery) Find() {
	for _, name := range slices.Sorted(maps.Keys(r.options.Runners)) {
		left, err := abandonedBy(r.options.Runners[name])
		if err != nil {
			r.options.Logger.Error(err, "Cannot list abandoned runs; they remain until the next start", "engine", name)
		}
		for _, one := range left {
			if one.identity.UID != "" {
				uid := types.UID(one.identity.UID)
				r.abandoned.set(uid, append(r.abandoned.of(uid), one))
			} else if err := one.runner.Discard(one.abandoned.ID()); err != nil {
				r.options.Logger.Error(err, "Cannot remove an empty abandoned run", "run", one.abandoned.ID())
			}
		}
	}
}

// Run recovers abandoned runs until ctx ends. A Machine's next run would also do so, but not every
// Machine gets one.
func (r *Recovery) Run(ctx context.Context) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		for _, uid := range r.abandoned.machines() {
			if status, known := r.options.Pool.Status(runs.Key(uid)); known && status.Active() {
				continue // the run recovers it
			}
			if err := r.Recover(ctx, uid); err != nil && ctx.Err() == nil {
				r.options.Logger.Error(err, "Cannot recover an abandoned run; retrying", "machine-uid", uid)
			}
		}
	}, recoveryInterval)
}

// Recover recovers a Machine's abandoned runs. A run that cannot be recovered yet blocks the
// Machine's next run.
func (r *Recovery) Recover(ctx context.Context, uid types.UID) error {
	if len(r.abandoned.of(uid)) == 0 {
		return nil
	}
	r.recovering.Lock()
	defer r.recovering.Unlock()
	for left := r.abandoned.of(uid); len(left) > 0; left = r.abandoned.of(uid) {
		one := left[0]
		ctx, cancel := context.WithTimeout(ctx, recoveryTimeout)
		err := r.recoverOne(ctx, one)
		cancel()
		if err != nil {
			return fmt.Errorf("saving the state that run %s failed to save: %w", one.identity.Run, err)
		}
		if err := one.runner.Discard(one.abandoned.ID()); err != nil {
			return err
		}
		r.abandoned.set(uid, left[1:])
	}
	return nil
}

// recoverOne saves the state that an engine failed to save. It replaces the stored state if that
// has not changed since. Otherwise the unsaved state is dropped if the stored one has all its
// resources, and kept as an orphan if not: it may be the only record of a resource. A truncated
// state is dropped. The run's intent remains, so the next run looks up the instance.
func (r *Recovery) recoverOne(ctx context.Context, left abandonedRun) error {
	key := state.KeyFor(left.identity.Namespace, types.UID(left.identity.UID))
	stored, err := r.options.Store.Get(ctx, key)
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
	if _, err := statefile.Parse(unsaved); err != nil {
		r.options.Metrics.Unsaved(reporting.UnsavedUnreadable)
		r.options.Logger.Error(err, "Dropping an unreadable unsaved state; the next run looks up the instance",
			"state", key.String(), "run", left.identity.Run)
		return nil
	}
	compared, err := statefile.Compare(stored.Raw, unsaved)
	if err != nil {
		return err
	}
	switch {
	case holds && (stored.Raw == nil || compared.Relation == statefile.RelationNewer):
		r.options.Metrics.Unsaved(reporting.UnsavedSaved)
		return r.putUnsaved(ctx, key, left.identity, unsaved)
	case len(compared.Missing) == 0:
		r.options.Metrics.Unsaved(reporting.UnsavedDropped)
		r.options.Logger.Info("Dropping an unsaved state: the stored one has all its resources", "state", key.String(),
			"relation", compared.Relation)
		return nil
	}
	r.options.Metrics.Unsaved(reporting.UnsavedOrphaned)
	r.options.Logger.Info("Keeping an unsaved state as an orphan: it has resources that the stored one lacks",
		"state", key.String(), "relation", compared.Relation, "resources", statefile.Names(compared.Missing))
	kept, err := r.options.Store.SaveOrphan(ctx, key, unsaved, state.OrphanOptions{
		Machine: left.identity.Name, MachineUID: types.UID(left.identity.UID), Missing: compared.Missing,
		Attachments: stored.Attachments,
		Reason: fmt.Sprintf("run %s of manager %s failed to save it, and another writer has changed the state since",
			left.identity.Run, left.identity.Owner),
	})
	if err != nil {
		return err
	}
	r.kept.add(kept.MachineUID, types.NamespacedName{Namespace: kept.Namespace, Name: kept.Name})
	return nil
}

// ofDeadCreate records in the intent that a create died, which its lock said until now. The next run sets the time.
func ofDeadCreate(now *state.Snapshot, run string) (state.Change, error) {
	found, err := record.Read(now.Meta)
	if err != nil || found.Intent == nil || found.Intent.Run != run || found.Intent.Operation != runs.Create {
		return state.Change{}, nil //nolint:nilerr // the next run reports an unreadable record
	}
	left := *found.Intent
	left.Abandoned, left.Died, left.Looked = run, time.Time{}, false
	return state.Change{Meta: record.NewPatch().SetIntent(left).MetaPatch}, nil
}

// putUnsaved replaces the state that a run began with.
func (r *Recovery) putUnsaved(ctx context.Context, key state.Key, who Identity, unsaved []byte) error {
	session, err := r.Acquire(ctx, key, state.AcquireOptions{
		Lock: state.Lock{Owner: r.options.Owner, Run: who.Run + "-recovery", Operation: "recovery"},
		Decide: func(_ context.Context, now *state.Snapshot) (state.Change, error) {
			if now.Lock == nil || now.Lock.Run != who.Run {
				return state.Change{}, runs.ErrNothingToDo // another writer was faster; compare with its state next time
			}
			return ofDeadCreate(now, who.Run)
		},
	})
	if err != nil {
		return err
	}
	return errors.Join(session.Put(ctx, unsaved), session.Release(ctx, nil))
}
