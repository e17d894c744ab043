// Package pipeline holds what all controllers share: a reconcile as an ordered list of steps,
// requeue times, write conflicts, and the registration with a manager.
//
// A controller has a scope, which is what one reconcile knows, and a list of steps, one per file,
// each a [Step] of that scope. Its Reconcile reads the object, runs the steps with [Run], writes
// what differs, and returns the scope's [Requeue.Result].
package pipeline

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// ConflictRetry is the delay before a reconcile whose write lost to another writer is repeated.
const ConflictRetry = time.Second

// Step is one part of a reconcile over a scope S.
type Step[S any] interface {
	// Reconcile does its part. It returns false when no later step may run in this reconcile.
	Reconcile(ctx context.Context, s S) (bool, error)
}

// Run runs the steps until one fails or ends the reconcile.
func Run[S any](ctx context.Context, steps []Step[S], s S) error {
	for _, step := range steps {
		if proceed, err := step.Reconcile(ctx, s); err != nil || !proceed {
			return err
		}
	}
	return nil
}

// RunAll runs the steps until one ends the reconcile. A step that fails does not end it unless it
// says so; all errors are returned. It reports whether the reconcile is complete: false when a step
// ended it with an error.
func RunAll[S any](ctx context.Context, steps []Step[S], s S) (bool, error) {
	var failures []error
	for _, step := range steps {
		proceed, err := step.Reconcile(ctx, s)
		failures = append(failures, err)
		if !proceed {
			return err == nil, errors.Join(failures...)
		}
	}
	return true, errors.Join(failures...)
}

// Requeue is when an object is reconciled again without an event; the zero value means never.
// Scopes embed it.
type Requeue struct {
	after time.Duration
}

// RequeueAfter requests a reconcile after a delay, unless an earlier one was requested. Zero or
// less requests none.
func (r *Requeue) RequeueAfter(after time.Duration) {
	if after > 0 && (r.after == 0 || after < r.after) {
		r.after = after
	}
}

// Result returns what a controller without an error returns.
func (r *Requeue) Result() reconcile.Result {
	return reconcile.Result{RequeueAfter: r.after}
}

// Written filters the error of a write. A missing object is not an error. After a conflict with
// another writer, the reconcile is repeated after [ConflictRetry].
func (r *Requeue) Written(err error) error {
	if apierrors.IsConflict(err) {
		r.RequeueAfter(ConflictRetry)
		return nil
	}
	return client.IgnoreNotFound(err)
}

// IfUnchanged returns a merge patch that the API server refuses with a conflict unless the object
// is the one given, at the resourceVersion given. Lists such as conditions, owners and taints are
// replaced as a whole, so a patch based on an outdated cache would undo the writes of others.
func IfUnchanged(base client.Object) client.Patch {
	return client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
}
