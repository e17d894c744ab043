package state

import (
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// AcquireOptions say who takes a state and what the same write records.
type AcquireOptions struct {
	// Lock to take. Owner and Run are required; Epoch is that of the manager's leadership.
	Lock Lock
	// Meta to change, such as the intent of the run.
	Meta MetaPatch
	// Labels to set on the head. Those under Prefix are put on parts and versions too.
	Labels map[string]string
	// Annotations to set on the head, by full name.
	Annotations map[string]string
	// Attachments to change on the head.
	Attachments Attachments
	// Break is a lock whose holder is proven dead. It is taken over only when it is the very one that is held.
	Break *Lock
	// Decide is called with the state as it is about to be locked (no Raw and no ResourceVersion where there is no head)
	// and returns what the write that takes the lock records besides Meta and Attachments. That write succeeds only on the
	// state that Decide has seen; when another was faster, the state is read and Decide called again. An error ends Acquire
	// without a write and is returned as it is. Its context ends with Acquire's.
	Decide func(context.Context, *Snapshot) (Change, error)
}

// Change is what Decide wants the write that takes the lock to record.
type Change struct {
	// Operation becomes the lock's, unless it is empty.
	Operation string
	// Meta is merged over that of the options.
	Meta MetaPatch
	// Attachments are merged over those of the options.
	Attachments Attachments
}

// errRaced says that the head changed between read and write.
var errRaced = errors.New("the head changed meanwhile")

// decideError carries an error of Decide through Acquire unchanged.
type decideError struct{ err error }

func (e *decideError) Error() string { return e.err.Error() }

// attempt is one write of Acquire.
type attempt struct {
	wanted *corev1.Secret
	change edit
}

// Acquire takes the lock of a state, records meta, and returns the session that may write it: one write in all, none
// when the lock is held by this very run and nothing changes. The head is made when absent. It returns a *LockedError
// when another holds the lock, a *SupersededError when a later leader than the lock's has locked or written the state,
// a *FormatError when a newer operator wrote it, and a *CorruptError or an *EncryptedError when the stored state cannot be read; all of them change nothing.
func (s *Store) Acquire(ctx context.Context, key Key, options AcquireOptions) (*Session, error) {
	if options.Lock.Owner == "" || options.Lock.Run == "" {
		return nil, fmt.Errorf("acquiring state %s: the lock has no owner or no run; set both", key)
	}
	if options.Lock.Since.IsZero() {
		options.Lock.Since = s.options.Clock.Now()
	}
	options.Lock.Since = options.Lock.Since.UTC().Round(0)
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	var last *attempt
	var session *Session
	err := s.unlessRaced(ctx, "acquiring state "+key.String(), func() (err error) {
		session, last, err = s.tryAcquire(ctx, key, options, last)
		return err
	})
	return session, err
}

// unlessRaced tries again while another writer is faster. What a caller has decided is returned as it is.
func (s *Store) unlessRaced(ctx context.Context, doing string, try func() error) error {
	for count := 1; ; count++ {
		err := try()
		if err == nil {
			return nil
		}
		if undecided, ok := errors.AsType[*decideError](err); ok {
			return undecided.err
		}
		if !errors.Is(err, errRaced) {
			return fmt.Errorf("%s: %w", doing, err)
		}
		if !s.wait(ctx, count, err) {
			return &UnavailableError{Doing: doing, Err: err}
		}
	}
}

// tryAcquire reads, decides and writes once. last is the attempt before, which may have been carried out after all: what
// it decided then holds, and must not be decided again over its own record.
func (s *Store) tryAcquire(ctx context.Context, key Key, options AcquireOptions, last *attempt) (*Session, *attempt, error) {
	seen, missing, err := s.readOrNew(ctx, key)
	if err != nil {
		return nil, nil, err
	}
	if last != nil && !missing && sameOwn(seen.head, last.wanted) {
		session := s.newSession(key, seen.head, last.change)
		session.tidyOrLater(ctx)
		return session, nil, nil
	}
	if err := s.mayTake(key, seen.head, options); err != nil {
		return nil, nil, err
	}
	change, err := s.decide(ctx, key, seen, options)
	if err != nil {
		return nil, nil, err
	}
	if err := s.attach(key, seen.head, &change, change.attachments); err != nil {
		return nil, nil, err
	}
	wanted := seen.head.DeepCopy()
	if err := change.apply(key, wanted); err != nil {
		return nil, nil, err
	}
	if !missing && sameOwn(wanted, seen.head) {
		// Nothing is tidied: without a write, one of an earlier session of this run may yet be carried out.
		return s.newSession(key, wanted, change), nil, nil
	}
	written, err := s.take(ctx, wanted, missing)
	if err != nil {
		return nil, &attempt{wanted: wanted, change: change}, err
	}
	session := s.newSession(key, written, change)
	session.tidyOrLater(ctx)
	return session, nil, nil
}

// decide makes the edit that takes the lock.
func (s *Store) decide(ctx context.Context, key Key, seen *view, options AcquireOptions) (edit, error) {
	lock := options.Lock
	change := edit{
		index: seen.index, lock: &lock, epoch: lock.Epoch, meta: options.Meta,
		labels: options.Labels, annotations: options.Annotations, attachments: options.Attachments, raw: seen.raw, packed: seen.packed,
	}
	if options.Decide == nil {
		return change, nil
	}
	stored, err := s.snapshot(key, seen)
	if err != nil {
		return edit{}, err
	}
	decided, err := options.Decide(ctx, stored)
	if err != nil {
		return edit{}, &decideError{err: err}
	}
	if decided.Operation != "" {
		lock.Operation = decided.Operation
	}
	change.meta = merged(options.Meta, decided.Meta)
	change.attachments = merged(options.Attachments, decided.Attachments)
	return change, nil
}

func merged[M ~map[string]V, V any](base, over M) M {
	if len(over) == 0 {
		return base
	}
	all := M{}
	maps.Copy(all, base)
	maps.Copy(all, over)
	return all
}

func (s *Store) newSession(key Key, head *corev1.Secret, change edit) *Session {
	session := &Session{store: s, key: key, lock: *change.lock, semaphore: make(chan struct{}, 1)}
	session.accept(head, change)
	return session
}

// mayTake decides whether the lock is free to be taken.
func (s *Store) mayTake(key Key, head *corev1.Secret, options AcquireOptions) error {
	held, err := decodeLock(head.Annotations)
	if err != nil {
		return &CorruptError{Key: key, Detail: err.Error()}
	}
	written, err := decodeEpoch(head.Annotations)
	if err != nil {
		return &CorruptError{Key: key, Detail: err.Error()}
	}
	if err := superseded(key, options.Lock.Epoch, written, held); err != nil {
		return err
	}
	switch {
	case held == nil || held.Holds(options.Lock):
		return nil
	case options.Break != nil && held.Equal(*options.Break):
		s.options.Logger.Info("Breaking a stale lock", "state", key.String(), "lock", held.String())
		return nil
	}
	return &LockedError{Key: key, Lock: *held}
}

// take writes the head; a conflict means that somebody, perhaps an earlier attempt of this very call, was faster. A write that was sent is waited for, an
// attemptLimit at most, though ctx ends, as it does when the manager stops: a lock that it has taken would stay until another leader breaks it.
func (s *Store) take(ctx context.Context, wanted *corev1.Secret, missing bool) (*corev1.Secret, error) {
	verb := s.update
	if missing {
		verb = s.create
	}
	written, _, err := s.write(ctx, "locking state", wanted, func(ctx context.Context, secret *corev1.Secret) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		sent, cancel := context.WithTimeout(context.WithoutCancel(ctx), attemptLimit)
		defer cancel()
		return verb(sent, secret)
	})
	if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) || !missing && apierrors.IsNotFound(err) {
		return nil, errRaced
	}
	return written, err
}
