package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// edit is one change of a head. It can be applied again to a newer head as long as the data that
// the store owns is the same.
type edit struct {
	index headIndex
	// data replaces the keys that the store owns; nil keeps them.
	data map[string][]byte
	// lock to hold, nil to release it.
	lock *Lock
	// epoch of the session that writes.
	epoch       Epoch
	meta        MetaPatch
	labels      map[string]string
	annotations map[string]string
	attachments Attachments
	// unprotect removes the finalizer, so that the head can be deleted.
	unprotect bool
	// raw and packed are the state once the edit is committed.
	raw    []byte
	packed []byte
}

// apply applies the edit to head.
func (e edit) apply(key Key, head *corev1.Secret) error {
	if head.Labels == nil {
		head.Labels = map[string]string{}
	}
	if head.Annotations == nil {
		head.Annotations = map[string]string{}
	}
	maps.Copy(head.Labels, e.labels)
	maps.Copy(head.Labels, key.stockLabels())
	head.Labels[LabelRole] = RoleHead
	maps.Copy(head.Annotations, e.annotations)
	head.Annotations[annotationEncoding] = encodingGzip
	for name, value := range e.meta {
		if reserved(name) {
			return fmt.Errorf("setting meta %q: the name is reserved by the store; use another name", name)
		}
		set(head.Annotations, Prefix+name, value)
	}
	if err := e.applyOwn(head.Annotations); err != nil {
		return err
	}
	if err := applyEpoch(head.Annotations, e.epoch); err != nil {
		return err
	}
	e.attachments.apply(head)
	e.protect(head)
	if e.data == nil {
		return nil
	}
	maps.DeleteFunc(head.Data, func(name string, _ []byte) bool { return ownsData(name) })
	if head.Data == nil {
		head.Data = map[string][]byte{}
	}
	maps.Copy(head.Data, e.data)
	return nil
}

// protect sets or removes the finalizer. The API server rejects new finalizers on an object that is
// being deleted.
func (e edit) protect(head *corev1.Secret) {
	switch {
	case e.unprotect:
		controllerutil.RemoveFinalizer(head, Finalizer)
	case head.DeletionTimestamp == nil:
		controllerutil.AddFinalizer(head, Finalizer)
	}
}

func (e edit) applyOwn(annotations map[string]string) error {
	delete(annotations, annotationLock)
	if e.lock != nil {
		text, err := e.lock.encode()
		if err != nil {
			return err
		}
		annotations[annotationLock] = text
	}
	delete(annotations, annotationRecord)
	if !e.index.Empty() {
		text, err := e.index.Encode()
		if err != nil {
			return err
		}
		annotations[annotationRecord] = text
	}
	return nil
}

func set(annotations map[string]string, name string, value *string) {
	if value == nil {
		delete(annotations, name)
		return
	}
	annotations[name] = *value
}

// pending is a write whose response was lost. It has succeeded, or may still succeed while the head
// is the one that it replaces. Until that is known, nothing that it refers to may be removed.
type pending struct {
	edit   edit
	wanted *corev1.Secret
}

// commit writes an edit to the head exactly once, or returns why it cannot.
func (s *Session) commit(ctx context.Context, doing string, change edit) error {
	for attempt := 1; ; attempt++ {
		wanted := s.head.DeepCopy()
		if err := change.apply(s.key, wanted); err != nil {
			return fmt.Errorf("%s: %w", doing, err)
		}
		written, uncertain, err := s.store.write(ctx, doing, wanted, s.store.update)
		if err == nil {
			s.accept(written, change)
			return nil
		}
		_, unavailable := errors.AsType[*UnavailableError](err)
		var attempted *pending
		if uncertain || unavailable {
			attempted = &pending{edit: change, wanted: wanted}
			s.pending = attempted
		}
		if unavailable {
			return err
		}
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return fmt.Errorf("%s: %w", doing, err)
		}
		if done, err := s.resync(ctx, attempted); done || err != nil {
			return err
		}
		if !s.store.wait(ctx, attempt, err) {
			return &UnavailableError{Doing: doing, Err: err}
		}
	}
}

// accept makes a committed edit the session's view.
func (s *Session) accept(head *corev1.Secret, change edit) {
	s.head, s.index, s.raw, s.packed, s.pending = head, change.index, change.raw, change.packed, nil
	if change.attachments != nil {
		s.attached = nil
	}
	if change.lock == nil {
		s.over = ErrClosed
	}
}

// resync reads the head after a failed write. done means that attempted was carried out after all.
// It fences the session if another writer has the head.
func (s *Session) resync(ctx context.Context, attempted *pending) (done bool, err error) {
	fresh, err := s.store.head(ctx, s.key)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return false, err
	}
	switch {
	case err != nil:
		return s.gone(attempted)
	case fresh.UID != s.head.UID:
		return s.gone(nil)
	case attempted != nil && sameOwn(fresh, attempted.wanted):
		s.accept(fresh, attempted.edit)
		return true, nil
	case s.pending != nil && attempted != s.pending && sameOwn(fresh, s.pending.wanted):
		s.accept(fresh, s.pending.edit)
		return false, &UnavailableError{Doing: "writing state " + s.key.String(),
			Err: errors.New("an earlier write was carried out late")}
	}
	if err := s.checkStillHeld(fresh); err != nil {
		return false, err
	}
	s.head = fresh
	if s.pending != nil && fresh.ResourceVersion != s.pending.wanted.ResourceVersion {
		s.pending = nil // it was conditional on a head that no longer exists, so it can no longer succeed
	}
	return false, nil
}

// gone ends the session after the head disappeared. That is expected if this session removed the
// finalizer that kept the head.
func (s *Session) gone(attempted *pending) (done bool, err error) {
	if attempted == nil || !attempted.edit.unprotect {
		return false, s.fence("the head Secret is gone")
	}
	s.accept(attempted.wanted, attempted.edit)
	s.over = ErrClosed
	return true, nil
}

// checkStillHeld fences the session unless lock and state are as it left them.
func (s *Session) checkStillHeld(fresh *corev1.Secret) error {
	lock, err := decodeLock(fresh.Annotations)
	written, _ := decodeEpoch(fresh.Annotations) // an unreadable epoch fences nobody out; the lock decides
	if err := superseded(s.key, s.lock.Epoch, Epoch{}, written, lock); err != nil {
		return s.end(err, "a later leader has the state")
	}
	switch {
	case err != nil || lock == nil || !lock.Holds(s.lock):
		return s.fence("another run holds the lock")
	case !sameState(fresh, s.head):
		return s.fence("another writer changed the state")
	}
	return nil
}

// fence ends the session.
func (s *Session) fence(why string) error { return s.end(ErrFenced, why) }

// end ends the session with an error that wraps ErrFenced.
func (s *Session) end(fenced error, why string) error {
	s.store.options.Logger.Info("Session is fenced off", "state", s.key.String(), "run", s.lock.Run, "reason", why)
	s.over = fenced
	return fmt.Errorf("writing state %s: %s: %w", s.key, why, fenced)
}

// sameState reports whether both heads commit the same state.
func sameState(a, b *corev1.Secret) bool {
	return a.Annotations[annotationRecord] == b.Annotations[annotationRecord] &&
		maps.EqualFunc(ownData(a.Data), ownData(b.Data), bytes.Equal)
}

// sameOwn reports whether both heads are equal in everything that the store writes.
func sameOwn(a, b *corev1.Secret) bool {
	return sameState(a, b) && controllerutil.ContainsFinalizer(a, Finalizer) == controllerutil.ContainsFinalizer(b,
		Finalizer) && maps.Equal(ownAnnotations(a), ownAnnotations(b)) &&
		maps.EqualFunc(attachmentsOf(a), attachmentsOf(b), bytes.Equal)
}

func ownAnnotations(head *corev1.Secret) map[string]string {
	own := map[string]string{}
	for name, value := range head.Annotations {
		if strings.HasPrefix(name, Prefix) {
			own[name] = value
		}
	}
	return own
}

// write sends a Secret with the given verb. Every attempt sends an identical object, so that the
// response to a lost attempt cannot make the next one succeed.
func (s *Store) write(
	ctx context.Context, doing string, wanted *corev1.Secret, verb func(context.Context, *corev1.Secret) error,
) (written *corev1.Secret, uncertain bool, err error) {
	uncertain, err = s.do(ctx, doing, func(ctx context.Context) error {
		written = wanted.DeepCopy()
		return verb(ctx, written)
	})
	return written, uncertain, err
}

func (s *Store) create(ctx context.Context, secret *corev1.Secret) error {
	return s.client.Create(ctx, secret)
}

func (s *Store) update(ctx context.Context, secret *corev1.Secret) error {
	return s.client.Update(ctx, secret)
}

func (s *Session) newSecret(name, role string, payload []byte) *corev1.Secret {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Namespace:   s.key.Namespace,
			Labels:      map[string]string{LabelRole: role},
			Annotations: map[string]string{annotationEncoding: encodingGzip},
		},
		Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{dataState: payload},
	}
	for name, value := range s.head.Labels {
		if strings.HasPrefix(name, Prefix) && name != LabelRole {
			secret.Labels[name] = value
		}
	}
	if name := s.head.Annotations[AnnotationMachine]; name != "" {
		secret.Annotations[AnnotationMachine] = name
	}
	return secret
}
