package state

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-iac/machine-iac-operator/internal/state/layout"
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
	// Lock is held only while a state that takes several Secrets is written. Its owner writes without leader election, and no engine: a lock of
	// the same owner is one that an earlier import has left.
	Lock Lock
	// Guard is recorded with that lock where there was no head: what a manager must know should the import not come to its end.
	Guard MetaPatch
	// Check is called with the state that is about to be replaced (no Raw and no ResourceVersion where there is no head). Its error ends the
	// import without a write.
	Check func(ctx context.Context, stored *Snapshot) error
}

// Import stores a state that was kept elsewhere. A state that fits one Secret takes one write, which succeeds only on the head that Check has
// seen, so that a manager may be at work beside it. It returns a *LockedError while a run holds the lock, a *statefile.RefusedError for what may
// not follow the stored state, a *FormatError, an *EncryptedError or a *CorruptError; all of them change nothing.
func (s *Store) Import(ctx context.Context, key Key, options ImportOptions) error {
	parsed, malformed := statefile.Parse(options.Raw)
	if len(options.Raw) > layout.MaxUnpacked {
		malformed = statefile.Malformed(layout.ErrTooBig.Error())
	}
	if malformed != nil {
		return fmt.Errorf("importing state %s: %w", key, malformed)
	}
	next, err := s.incoming(parsed, options.Raw)
	if err != nil {
		return fmt.Errorf("importing state %s: %w", key, err)
	}
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	return s.unlessRaced(ctx, "importing state "+key.String(), func() error { return s.tryImport(ctx, key, next, options) })
}

// tryImport reads, checks and writes once.
func (s *Store) tryImport(ctx context.Context, key Key, next layout.Incoming, options ImportOptions) error {
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
	data := layout.OwnData(seen.head.Data)
	data[dataState] = seen.packed
	planned := layout.PlanPut(seen.index, data, next, s.options.layout(), func(e layout.Entry, chunks int) layout.Blob { return layout.Blob{Chunks: chunks} })
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

// mayImport returns why a state may not follow the one that is stored; same says that it is the stored one.
func (s *Store) mayImport(ctx context.Context, key Key, seen *view, next layout.Incoming, options ImportOptions) (same bool, err error) {
	stored, err := s.snapshot(key, seen)
	if err != nil {
		return false, err
	}
	if err := options.Check(ctx, stored); err != nil {
		return false, &decideError{err: err}
	}
	return checkSuccessor(stored, next.State, next.Raw)
}

// importEdit is the write that stores an imported state with all that belongs to it.
func (s *Store) importEdit(key Key, head *corev1.Secret, next layout.Incoming, planned layout.Plan, o ImportOptions) (edit, error) {
	unguarded := MetaPatch{}
	for name := range o.Guard {
		unguarded[name] = nil
	}
	change := edit{
		index: planned.Index, data: planned.Data, meta: merged(unguarded, o.Meta), labels: o.Labels, annotations: o.Annotations,
		raw: next.Raw, packed: next.Packed,
	}
	err := s.attach(key, head, &change, o.Attachments)
	return change, err
}

// importInParts imports a state that takes several writes, under a lock. Where it does not come to its end, what it has begun is undone.
func (s *Store) importInParts(ctx context.Context, key Key, next layout.Incoming, options ImportOptions, left *Lock, missing bool) error {
	acquire := AcquireOptions{Lock: options.Lock, Break: left, Decide: func(ctx context.Context, stored *Snapshot) (Change, error) {
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

// importState stores a state with all that belongs to it, in one write behind the copies that it needs.
func (s *Session) importState(ctx context.Context, next layout.Incoming, options ImportOptions) error {
	leave, err := s.enter(ctx)
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
	return err // the release of the lock tidies
}

// readOrNew reads a state, and returns an empty one where there is none.
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
