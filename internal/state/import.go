package state

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

// ImportOptions say what is stored with an imported state.
type ImportOptions struct {
	// Raw is the state.
	Raw []byte
	// Meta, Labels, Annotations and Attachments are stored with it, as in AcquireOptions.
	Meta        MetaPatch
	Labels      map[string]string
	Annotations map[string]string
	Attachments Attachments
	// Lock is held only while a state that needs several Secrets is written. Its owner uses neither
	// leader election nor an engine, so a lock of the same owner was left behind by an earlier import.
	Lock Lock
	// Guard is recorded with that lock if there was no head. It tells a manager about an interrupted import.
	Guard MetaPatch
	// Check gets the state that is about to be replaced. A missing head has no Raw and no
	// ResourceVersion. An error ends the import without a write.
	Check func(ctx context.Context, stored *Snapshot) error
}

// Import stores a state from elsewhere. A state that fits one Secret takes one write, which
// succeeds only on the head that Check has seen, so a manager may keep working meanwhile.
//
// Import returns one of these errors, and changes nothing:
//   - *LockedError if a run holds the lock
//   - *statefile.RefusedError if the state cannot follow the stored one
//   - *FormatError, *EncryptedError or *CorruptError if the stored state cannot be read
func (s *Store) Import(ctx context.Context, key Key, options ImportOptions) error {
	parsed, malformed := statefile.Parse(options.Raw)
	if malformed != nil {
		return fmt.Errorf("importing state %s: %w", key, malformed)
	}
	next, err := s.incoming(parsed, options.Raw)
	if err != nil {
		return fmt.Errorf("importing state %s: %w", key, err)
	}
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	return s.unlessRaced(ctx, "importing state "+key.String(),
		func() error { return s.tryImport(ctx, key, next, options) })
}

// tryImport makes one attempt: it reads, checks and writes.
func (s *Store) tryImport(ctx context.Context, key Key, next incomingState, options ImportOptions) error {
	seen, missing, err := s.readOrNew(ctx, key)
	if err != nil {
		return err
	}
	left, _ := decodeLock(seen.head.Annotations) // mayTake returns the error
	if left != nil && left.Owner != options.Lock.Owner {
		left = nil
	}
	if err := s.mayTake(key, seen.head, AcquireOptions{Lock: options.Lock, Break: left}); err != nil {
		return err
	}
	same, err := s.mayImport(ctx, key, seen, next, options)
	if err != nil || same && left == nil {
		return err
	}
	data := ownData(seen.head.Data)
	data[dataState] = seen.packed
	planned := planPut(seen.index, data, next, s.options.layout(), func(e indexEntry, chunks int) indexBlob {
		return indexBlob{Chunks: chunks}
	})
	if len(planned.Stage) > 0 || seen.index.Elsewhere() || left != nil {
		return s.importInParts(ctx, key, next, options, left, missing)
	}
	wanted := seen.head.DeepCopy()
	change, err := s.importEdit(key, seen.head, next, planned, options)
	if err != nil {
		return err
	}
	if err := change.apply(key, wanted); err != nil {
		return err
	}
	_, err = s.take(ctx, wanted, missing)
	return err
}

// mayImport returns an error if a state cannot follow the stored one. same means that it is the
// stored one.
func (s *Store) mayImport(ctx context.Context, key Key, seen *view, next incomingState,
	options ImportOptions) (same bool, err error) {
	stored, err := s.snapshot(key, seen)
	if err != nil {
		return false, err
	}
	if err := options.Check(ctx, stored); err != nil {
		return false, &decideError{err: err}
	}
	return checkSuccessor(stored, next.State, next.Raw)
}

// importEdit returns the edit that stores an imported state and everything that goes with it.
func (s *Store) importEdit(key Key, head *corev1.Secret, next incomingState, planned writePlan,
	o ImportOptions) (edit, error) {
	unguarded := MetaPatch{}
	for name := range o.Guard {
		unguarded[name] = nil
	}
	change := edit{
		index: planned.Index, data: planned.Data, meta: merged(unguarded,
			o.Meta), labels: o.Labels, annotations: o.Annotations,
		raw: next.Raw, packed: next.Packed,
	}
	err := s.attach(key, head, &change, o.Attachments)
	return change, err
}

// importInParts imports, under a lock, a state that needs several writes. It undoes a new state if
// it fails.
func (s *Store) importInParts(ctx context.Context, key Key, next incomingState, options ImportOptions, left *Lock,
	missing bool) error {
	acquire := AcquireOptions{Lock: options.Lock, Break: left,
		Decide: func(ctx context.Context, stored *Snapshot) (Change, error) {
			return Change{}, options.Check(ctx, stored)
		}}
	if missing {
		acquire.Meta, acquire.Labels, acquire.Annotations = options.Guard, options.Labels, options.Annotations
	}
	session, err := s.Acquire(ctx, key, acquire)
	if err != nil {
		return err
	}
	err = session.importState(ctx, next, options)
	if err != nil && missing {
		return errors.Join(err, session.Delete(ctx))
	}
	return errors.Join(err, session.Release(ctx, nil))
}

// importState stores a state and everything that goes with it in one write, after the copies that
// it needs.
func (s *Session) importState(ctx context.Context, next incomingState, options ImportOptions) error {
	ctx, leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	stored, err := s.snapshot()
	if err != nil {
		return err
	}
	if same, err := checkSuccessor(stored, next.State, next.Raw); same || err != nil {
		return err
	}
	planned, err := s.plan(ctx, next)
	if err != nil {
		return err
	}
	change, err := s.store.importEdit(s.key, s.head, next, planned, options)
	if err != nil {
		return err
	}
	change.lock = &s.lock
	if err = s.commit(ctx, "importing state "+s.key.String(), change); errors.Is(err, ErrFenced) {
		s.abandon(ctx, planned.Stage)
	}
	return err // releasing the lock cleans up
}

// readOrNew reads a state, or returns an empty one if there is none.
func (s *Store) readOrNew(ctx context.Context, key Key) (seen *view, missing bool, err error) {
	seen, err = s.read(ctx, key)
	if !errors.Is(err, ErrNotFound) {
		return seen, false, err
	}
	return &view{head: &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Type:       corev1.SecretTypeOpaque,
	}}, true, nil
}
