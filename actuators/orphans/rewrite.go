package orphans

import (
	"context"
	"errors"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// rewriting tracks the rewriting of every state.
type rewriting struct {
	// done are the states that need no rewrite; over reports that all are done.
	done map[state.Key]bool
	over bool
}

// rewriteStates rewrites every state that existed at the start of this leader's term with the
// current encryption settings. Later writes use them anyway. A locked or unreadable state is
// retried in the next pass.
func (o *Orphans) rewriteStates(ctx context.Context, heads []state.Head) error {
	if o.rewriting.over {
		return nil
	}
	if o.rewriting.done == nil {
		o.rewriting.done = map[state.Key]bool{}
	}
	unsaved, problem := o.Actuator.UnsavedStates(ctx, o.Namespace)
	left, written := 0, 0
	try := func(key state.Key, rewrite func() (bool, error)) {
		if o.rewriting.done[key] || ctx.Err() != nil {
			return
		}
		changed, err := rewrite()
		if changed {
			written++
		}
		o.rewriting.done[key] = err == nil
		if err == nil {
			return
		}
		left++
		if _, locked := errors.AsType[*state.LockedError](err); !locked && problem == nil {
			problem = err // one error is representative
		}
	}
	for _, head := range heads {
		try(head.Key, func() (bool, error) { return o.rewriteState(ctx, head.Key) })
	}
	for _, one := range unsaved {
		try(state.Key{Namespace: one.Namespace, Name: one.Name},
			func() (bool, error) { return o.Store.RewriteOrphan(ctx, one) })
	}
	o.rewriting.over = left == 0 && problem == nil && ctx.Err() == nil
	if written > 0 || left > 0 {
		o.Logger.Info("Encrypted states with the current key", "written", written, "left", left)
	}
	return problem
}

// rewriteState rewrites a state if needed.
func (o *Orphans) rewriteState(ctx context.Context, key state.Key) (changed bool, err error) {
	outdated, err := o.Store.Outdated(ctx, key)
	if err != nil || !outdated {
		if errors.Is(err, state.ErrNotFound) {
			err = nil
		}
		return false, err
	}
	session, err := o.Actuator.AcquireIdle(ctx, key, "rewrite",
		state.AcquireOptions{Decide: func(_ context.Context, now *state.Snapshot) (state.Change, error) {
			if now.ResourceVersion == "" {
				return state.Change{}, runs.ErrNothingToDo
			}
			return state.Change{}, nil
		}})
	if errors.Is(err, runs.ErrNothingToDo) {
		return false, nil
	}
	if _, waiting := actuators.AsRequeueAfter(err); waiting {
		return false, &state.LockedError{Key: key}
	}
	if err != nil {
		return false, err
	}
	err = session.Rewrite(ctx)
	return err == nil, errors.Join(err, session.Release(ctx, nil))
}
