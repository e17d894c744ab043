package state

import (
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// AcquireOptions say who acquires the lock and what the same write records.
type AcquireOptions struct {
	// Lock to acquire. Owner and Run are required; Epoch is that of the manager's leadership.
	Lock Lock
	// Meta to change, such as the intent of the run.
	Meta MetaPatch
	// Labels to set on the head. Those under Prefix are put on parts and versions too.
	Labels map[string]string
	// Annotations to set on the head, by full name.
	Annotations map[string]string
	// Attachments to change on the head.
	Attachments Attachments
	// Break is a lock whose holder is known to be dead. Acquire takes it over only if it is exactly
	// the lock that is held.
	Break *Lock
	// Refuted is an epoch in the head that is later than the lock's and that never existed: the Lease,
	// read afterwards, shows neither that epoch nor one in between.
	Refuted Epoch
	// Decide gets the state that is about to be locked and returns what that write records in addition
	// to Meta and Attachments. A missing head has no Raw and no ResourceVersion. If another writer
	// gets in between, Acquire reads the state again and calls Decide again. An error ends Acquire
	// without a write and is returned unchanged. The context is Acquire's.
	Decide func(context.Context, *Snapshot) (Change, error)
}

// Change is what Decide adds to the write that takes the lock.
type Change struct {
	// Operation replaces the lock's operation unless empty.
	Operation string
	// Meta is merged over that of the options.
	Meta MetaPatch
	// Attachments are merged over those of the options.
	Attachments Attachments
}

// errRaced means that the head changed between read and write.
var errRaced = errors.New("the head was changed by another writer")

// decideError carries an error of Decide through Acquire unchanged.
type decideError struct{ err error }

func (e *decideError) Error() string { return e.err.Error() }

// attempt is one write of Acquire.
type attempt struct {
	wanted *corev1.Secret
	change edit
}

// Acquire takes the lock of a state, records meta, and returns a session that can write the state.
// It needs one write, or none if this run already holds the lock and nothing changes. A missing
// head is created.
//
// Acquire returns one of these errors, and changes nothing:
//   - *LockedError if another run holds the lock
//   - *SupersededError if a leader later than the lock's has locked or written the state
//   - *FormatError if a newer operator wrote the state
//   - *CorruptError or *EncryptedError if the stored state cannot be read
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

// unlessRaced retries while other writers win the race. It returns an error of the caller's Decide
// unchanged.
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

// tryAcquire makes one attempt: it reads, decides and writes. last is the previous attempt. If its
// write did succeed, its decision stands: Decide must not run again on top of its own record.
func (s *Store) tryAcquire(ctx context.Context, key Key, options AcquireOptions, last *attempt) (*Session,
	*attempt, error) {
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
		// Do not clean up here: without a write, a pending write of an earlier session of this run may
		// still succeed.
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

// decide returns the edit that takes the lock.
func (s *Store) decide(ctx context.Context, key Key, seen *view, options AcquireOptions) (edit, error) {
	lock := options.Lock
	change := edit{
		index: seen.index, lock: &lock, epoch: lock.Epoch, meta: options.Meta,
		labels: options.Labels, annotations: options.Annotations, attachments: options.Attachments, raw: seen.raw,
		packed: seen.packed,
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

// mayTake returns an error unless the lock can be taken.
func (s *Store) mayTake(key Key, head *corev1.Secret, options AcquireOptions) error {
	held, err := decodeLock(head.Annotations)
	if err != nil {
		return &CorruptError{Key: key, Detail: err.Error()}
	}
	written, err := decodeEpoch(head.Annotations)
	if err != nil {
		return &CorruptError{Key: key, Detail: err.Error()}
	}
	if err := superseded(key, options.Lock.Epoch, options.Refuted, written, held); err != nil {
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

// take writes the head. A conflict means that another writer was faster, possibly an earlier
// attempt of the same call. Once sent, a write is awaited for up to attemptLimit even if ctx is
// canceled, as when the manager stops: an unnoticed lock would stay until another leader breaks it.
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
