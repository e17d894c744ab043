package state

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AcquireOptions say who takes a state and what the same write records.
type AcquireOptions struct {
	// Lock to take. Owner and Run are required.
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
}

// errRaced says that the head changed between read and write.
var errRaced = errors.New("the head changed meanwhile")

// Acquire takes the lock of a state, records meta, and returns the session that may write it: one write in all, none
// when the lock is held by this very run and nothing changes. The head is made when absent. It returns a *LockedError
// when another holds the lock and a *CorruptError when the stored state cannot be read; both change nothing.
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
	for attempt := 1; ; attempt++ {
		session, err := s.tryAcquire(ctx, key, options)
		if err == nil {
			session.tidyOrLater(ctx)
			return session, nil
		}
		if !errors.Is(err, errRaced) {
			return nil, fmt.Errorf("acquiring state %s: %w", key, err)
		}
		if !s.wait(ctx, attempt, err) {
			return nil, &UnavailableError{Doing: "acquiring state " + key.String(), Err: err}
		}
	}
}

func (s *Store) tryAcquire(ctx context.Context, key Key, options AcquireOptions) (*Session, error) {
	seen, err := s.read(ctx, key)
	missing := errors.Is(err, ErrNotFound)
	if missing {
		seen = &view{head: &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
			Type:       corev1.SecretTypeOpaque,
		}}
	} else if err != nil {
		return nil, err
	}
	if err := s.mayTake(key, seen.head, options); err != nil {
		return nil, err
	}
	if err := options.Attachments.fit(seen.head); err != nil {
		return nil, err
	}
	change := edit{
		record: seen.record, lock: &options.Lock, meta: options.Meta,
		labels: options.Labels, annotations: options.Annotations, attachments: options.Attachments, raw: seen.raw, packed: seen.packed,
	}
	wanted := seen.head.DeepCopy()
	if err := change.apply(key, wanted); err != nil {
		return nil, err
	}
	if missing || !sameOwn(wanted, seen.head) {
		if wanted, err = s.take(ctx, wanted, missing); err != nil {
			return nil, err
		}
	}
	session := &Session{store: s, key: key, lock: options.Lock, turn: make(chan struct{}, 1)}
	session.accept(wanted, change)
	return session, nil
}

// mayTake decides whether the lock is free to be taken.
func (s *Store) mayTake(key Key, head *corev1.Secret, options AcquireOptions) error {
	held, err := decodeLock(head.Annotations)
	switch {
	case err != nil:
		return &CorruptError{Key: key, Detail: err.Error()}
	case held == nil || held.Holds(options.Lock):
		return nil
	case options.Break != nil && held.Equal(*options.Break):
		s.options.Logger.Info("Breaking a stale lock", "state", key.String(), "lock", held.String())
		return nil
	}
	return &LockedError{Key: key, Lock: *held}
}

// take writes the head; a conflict means that somebody, perhaps an earlier attempt of this very call, was faster.
func (s *Store) take(ctx context.Context, wanted *corev1.Secret, missing bool) (*corev1.Secret, error) {
	verb := s.update
	if missing {
		verb = s.create
	}
	written, _, err := s.write(ctx, "locking state", wanted, verb)
	if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) || !missing && apierrors.IsNotFound(err) {
		return nil, errRaced
	}
	return written, err
}
