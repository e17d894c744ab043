package state

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

// MetaPatch changes Snapshot.Meta: a value sets its key, nil removes it, absent keys stay.
type MetaPatch map[string]*string

// Session is the right to write one state. Each write carries the head's resourceVersion. After a
// conflict, the session continues only if lock and state are still as it left them. A session is
// safe for concurrent use; its calls run one at a time.
type Session struct {
	store *Store
	key   Key
	lock  Lock
	// semaphore is a mutex that a caller can stop waiting for when its context ends.
	semaphore chan struct{}

	head   *corev1.Secret
	index  headIndex
	raw    []byte
	packed []byte
	// pending is a write that may still succeed.
	pending *pending
	// late means that a copy may still appear after it was deleted. The next session deletes it.
	late bool
	// attached are changes to attachments that go with the next write.
	attached Attachments
	// encryptedData reports whether any attachment will be encrypted once these changes are written.
	encryptedData bool
	// deleting means that the session removed the finalizer, or sent a delete of the head whose
	// response was lost. If the head disappears then, this session deleted it.
	deleting bool
	// over is ErrFenced, a *SupersededError or ErrClosed after the session has ended.
	over error
}

// Key returns the key of the session's state.
func (s *Session) Key() Key { return s.key }

// Lock returns the lock that the session holds.
func (s *Session) Lock() Lock { return s.lock }

// Snapshot returns the state as Acquire, or the session's last write, left it. It returns ErrFenced
// or ErrClosed after the session has ended.
func (s *Session) Snapshot(ctx context.Context) (*Snapshot, error) {
	_, leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return s.snapshot()
}

func (s *Session) snapshot() (*Snapshot, error) {
	return s.store.snapshot(s.key, &view{head: s.head, index: s.index, raw: s.raw})
}

// enter bounds a call, waits for the session's semaphore and resolves a write with a lost response.
func (s *Session) enter(ctx context.Context) (bounded context.Context, leave func(), err error) {
	ctx, cancel := s.store.bounded(ctx)
	select {
	case s.semaphore <- struct{}{}:
	case <-ctx.Done():
		cancel()
		return nil, nil, &UnavailableError{Doing: "waiting for an earlier write of state " + s.key.String(), Err: ctx.Err()}
	}
	leave = func() {
		<-s.semaphore
		cancel()
	}
	if s.over == nil && s.pending != nil {
		_, err = s.resync(ctx, s.pending)
	}
	if err == nil {
		err = s.over
	}
	if err != nil {
		leave()
		return nil, nil, err
	}
	return ctx, leave, nil
}

// Put stores a state. Storing the current state again is a no-op. Put changes nothing and returns a
// *RefusedError if raw is not a state, has another lineage or an older serial, or differs from the
// stored state of the same serial. Other errors are ErrFenced, ErrClosed, *UnavailableError, or the
// API server's.
func (s *Session) Put(ctx context.Context, raw []byte) error {
	parsed, err := statefile.Parse(raw)
	if err != nil {
		return fmt.Errorf("putting state %s: %w", s.key, err)
	}
	ctx, leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	stored, err := s.snapshot()
	if err != nil {
		return err
	}
	if same, err := checkSuccessor(stored, parsed, raw); same || err != nil {
		return err
	}
	next, err := s.store.incoming(parsed, raw)
	if err != nil {
		return fmt.Errorf("putting state %s: %w", s.key, err)
	}
	return s.put(ctx, next)
}

func (s *Session) put(ctx context.Context, next incomingState) error {
	planned, err := s.plan(ctx, next)
	if err != nil {
		return err
	}
	err = s.commit(ctx, "writing state "+s.key.String(), edit{
		index: planned.Index, data: planned.Data, lock: &s.lock, epoch: s.lock.Epoch, raw: next.Raw,
		packed: next.Packed,
	})
	if errors.Is(err, ErrFenced) {
		s.abandon(ctx, planned.Stage)
	}
	if err != nil {
		return err
	}
	s.tidyOrLater(ctx)
	return nil
}

// plan decides where everything goes and writes the copies that this needs. A namespace that is
// being deleted accepts no new Secrets. Earlier versions that need one are then dropped, so that
// the state itself can be saved.
func (s *Session) plan(ctx context.Context, next incomingState) (writePlan, error) {
	data := ownData(s.head.Data)
	data[dataState] = s.packed
	limits := s.store.options.layout()
	planned := planPut(s.index, data, next, limits, s.newBlob)
	err := s.stage(ctx, planned.Stage)
	if !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || len(next.Packed) > limits.Chunk {
		return planned, err
	}
	s.store.options.Logger.Info("Dropping earlier versions of a state because its namespace is being deleted", "state",
		s.key.String())
	limits.NoCopies = true
	return planPut(s.index, data, next, limits, s.newBlob), nil
}

// edit returns an edit that changes only the pending attachments.
func (s *Session) edit() edit {
	change := edit{index: s.index, lock: &s.lock, epoch: s.lock.Epoch, raw: s.raw, packed: s.packed,
		attachments: s.attached}
	if s.attached != nil {
		change.index.EncryptedData = s.encryptedData
	}
	return change
}

// SetMeta changes the state's meta in one write, or in none if nothing changes.
func (s *Session) SetMeta(ctx context.Context, meta MetaPatch) error {
	ctx, leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	change := s.edit()
	change.meta = meta
	wanted := s.head.DeepCopy()
	if err := change.apply(s.key, wanted); err != nil {
		return err
	}
	if sameOwn(wanted, s.head) {
		return nil
	}
	return s.commit(ctx, "setting meta of state "+s.key.String(), change)
}

// Release releases the lock and changes the meta in one write, and ends the session. Calling it
// again is a no-op.
func (s *Session) Release(ctx context.Context, meta MetaPatch) error {
	ctx, leave, err := s.enter(ctx)
	if errors.Is(err, ErrClosed) {
		return nil
	}
	if err != nil {
		return err
	}
	defer leave()
	s.tidyOrLater(ctx)
	change := s.edit()
	change.lock, change.meta = nil, meta
	return s.commit(ctx, "releasing state "+s.key.String(), change)
}

// Delete deletes the state with all its parts and versions, and ends the session. It returns a
// *ResourcesRemainError while the state contains managed resources. Calling it again is a no-op.
func (s *Session) Delete(ctx context.Context) error { return s.remove(ctx, s.mayDelete) }

// Forget deletes the state like Delete, whatever it contains. Its resources are no longer tracked
// anywhere.
func (s *Session) Forget(ctx context.Context) error {
	return s.remove(ctx, func() error { return nil })
}

func (s *Session) remove(ctx context.Context, allowed func() error) error {
	ctx, leave, err := s.enter(ctx)
	if errors.Is(err, ErrClosed) {
		return nil
	}
	if err != nil {
		return err
	}
	defer leave()
	if err := allowed(); err != nil {
		return err
	}
	if s.index.Elsewhere() {
		change := s.edit()
		change.index, change.data, change.raw, change.packed = change.index.Discarded(), map[string][]byte{}, nil, nil
		if err := s.commit(ctx, "emptying state "+s.key.String(), change); err != nil {
			return err
		}
		s.late = false // without the head, a next session could not find the copies
		if err := s.tidy(ctx); err != nil {
			return fmt.Errorf("deleting state %s: %w", s.key, err)
		}
	}
	return s.deleteHead(ctx)
}

func (s *Session) mayDelete() error {
	stored, err := s.snapshot()
	if err != nil {
		return err
	}
	parsed, err := stored.State()
	if err != nil {
		return err
	}
	managed := parsed.Managed()
	if len(managed) == 0 {
		return nil
	}
	remain := &ResourcesRemainError{Key: s.key}
	for _, resource := range managed {
		remain.Addresses = append(remain.Addresses, resource.Address())
	}
	return remain
}

// deleteHead removes the finalizer and deletes the head. After a crash in between, the next session
// protects the head again.
func (s *Session) deleteHead(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		if err := s.unprotect(ctx); err != nil || s.over != nil {
			return err
		}
		condition := client.Preconditions{UID: &s.head.UID, ResourceVersion: &s.head.ResourceVersion}
		uncertain, err := s.store.do(ctx, "deleting state "+s.key.String(), func(ctx context.Context) error {
			return s.store.client.Delete(ctx, s.head.DeepCopy(), condition)
		})
		s.deleting = s.deleting || uncertain
		if err == nil || s.deleting && apierrors.IsNotFound(err) {
			s.over = ErrClosed
			return nil
		}
		if _, ok := errors.AsType[*UnavailableError](err); ok {
			s.deleting = true
			return err
		}
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return err
		}
		if _, err := s.resync(ctx, nil); err != nil {
			return err
		}
		if !s.store.wait(ctx, attempt, err) {
			return &UnavailableError{Doing: "deleting state " + s.key.String(), Err: err}
		}
	}
}

// unprotect removes the finalizer. A head that was being deleted then disappears, and the session
// ends.
func (s *Session) unprotect(ctx context.Context) error {
	for controllerutil.ContainsFinalizer(s.head, Finalizer) {
		change := s.edit()
		change.unprotect = true
		if err := s.commit(ctx, "deleting state "+s.key.String(), change); err != nil || s.over != nil {
			return err
		}
		s.deleting = true
	}
	if s.deleting && s.head.DeletionTimestamp != nil && len(s.head.Finalizers) == 0 {
		s.over = ErrClosed
	}
	return nil
}
