package state

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/machine-iac/machine-iac-operator/internal/state/layout"
)

// newBlob names a copy. The name is used once, so nobody else's clean-up can ever mean it.
func (s *Session) newBlob(e layout.Entry, chunks int) layout.Blob {
	unique := make([]byte, 6)
	_, _ = rand.Read(unique) // never fails: it ends the process instead
	name := fmt.Sprintf("%s%s%d-%s", s.key.Name, blobInfix, e.Serial, hex.EncodeToString(unique))
	return layout.Blob{Name: name, Chunks: chunks}
}

// stage writes copies before the commit that refers to them. The head names them first, as trash: whatever a crash
// leaves of them is found there.
func (s *Session) stage(ctx context.Context, copies []layout.Staged) error {
	if len(copies) == 0 {
		return nil
	}
	change := s.edit()
	change.index.Trash = slices.Clone(change.index.Trash)
	for _, c := range copies {
		change.index.Trash = append(change.index.Trash, c.Blob)
	}
	if err := s.commit(ctx, "announcing copies of state "+s.key.String(), change); err != nil {
		return err
	}
	for _, c := range copies {
		for i, chunk := range layout.Split(c.Payload, s.store.options.ChunkBytes) {
			secret := s.newSecret(c.Blob.Chunk(i), RoleVersion, chunk)
			secret.Immutable = ptr.To(true)
			secret.Finalizers = []string{Finalizer} // the deletion of a namespace would take them before the head
			if err := s.store.createOnce(ctx, secret); err != nil {
				if _, lost := errors.AsType[*UnavailableError](err); lost {
					s.late = true
				}
				return fmt.Errorf("writing a copy of state %s: %w", s.key, err)
			}
		}
	}
	return nil
}

// abandon removes the copies of a commit for which the session was fenced off: whoever took the state over may have tidied
// before they were made. Those that a version is read from stay, for the commit may have been carried out before.
func (s *Session) abandon(ctx context.Context, copies []layout.Staged) {
	var known layout.Index
	fresh, err := s.store.head(ctx, s.key)
	if err == nil {
		known, err = layout.DecodeIndex(fresh.Annotations)
	}
	if err != nil && !errors.Is(err, ErrNotFound) {
		return
	}
	for _, c := range copies {
		if known.Reads(c.Blob) {
			continue
		}
		for i := range c.Blob.Chunks {
			if err := s.store.removeProtected(ctx, types.NamespacedName{Namespace: s.key.Namespace, Name: c.Blob.Chunk(i)}); err != nil {
				s.store.options.Logger.Info("A copy that nothing refers to is left", "secret", c.Blob.Chunk(i), "reason", err.Error())
				return
			}
		}
	}
}

// tidyOrLater tidies. A failure is no loss: the record says what is left to do, and the next session does it.
func (s *Session) tidyOrLater(ctx context.Context) {
	if err := s.tidy(ctx); err != nil {
		s.store.options.Logger.Info("Parts or copies of a state are left to be tidied", "state", s.key.String(), "reason", err.Error())
	}
}

// tidy makes the Secrets besides the head those that the record names. The next write of the head records that.
func (s *Session) tidy(ctx context.Context) error {
	if s.index.Tidy() {
		return nil
	}
	if s.pending != nil {
		return errors.New("a write may yet be carried out that needs them")
	}
	if s.index.Untidy {
		if err := s.tidyParts(ctx); err != nil {
			return err
		}
	}
	if s.late {
		return errors.New("a copy may yet be made")
	}
	for _, b := range s.index.Trash {
		if !strings.HasPrefix(b.Name, s.key.Name+blobInfix) {
			continue // not a name of this store's: whoever wrote it into the record must not have it deleted
		}
		for i := range b.Chunks {
			if err := s.store.removeProtected(ctx, types.NamespacedName{Namespace: s.key.Namespace, Name: b.Chunk(i)}); err != nil {
				return err
			}
		}
	}
	s.index = s.index.Cleaned()
	return nil
}

func (s *Session) tidyParts(ctx context.Context) error {
	chunks := s.index.Current.Chunks()
	for i := max(chunks, 1); i <= s.index.Parts; i++ {
		if err := s.store.remove(ctx, types.NamespacedName{Namespace: s.key.Namespace, Name: s.key.part(i)}); err != nil {
			return err
		}
	}
	if chunks < 2 || s.index.Current.Blob == nil {
		return nil
	}
	size := len(s.head.Data[dataState]) // as it was cut, whatever the limit is now
	for i, chunk := range layout.Split(s.packed, size)[1:] {
		if err := s.writePart(ctx, i+1, chunk); err != nil {
			return err
		}
	}
	return nil
}

// writePart writes one part as Terraform does. A part of a newer state stays: its writer has fenced this session off.
func (s *Session) writePart(ctx context.Context, index int, chunk []byte) error {
	wanted := s.newSecret(s.key.part(index), RolePart, chunk)
	for name, value := range s.key.stockLabels() {
		wanted.Labels[name] = value
	}
	wanted.Annotations[annotationSerial] = strconv.FormatUint(s.index.Current.Serial, 10)
	have, err := s.store.secret(ctx, types.NamespacedName{Namespace: wanted.Namespace, Name: wanted.Name})
	if errors.Is(err, ErrNotFound) {
		return s.store.createOnce(ctx, wanted)
	}
	if err != nil {
		return err
	}
	if serial, err := strconv.ParseUint(have.Annotations[annotationSerial], 10, 64); err == nil && serial > s.index.Current.Serial {
		return fmt.Errorf("writing part %s: it is of the newer serial %d", wanted.Name, serial)
	}
	if bytes.Equal(have.Data[dataState], chunk) {
		return nil
	}
	wanted.ResourceVersion = have.ResourceVersion
	_, _, err = s.store.write(ctx, "writing Secret "+wanted.Name, wanted, s.store.update)
	return err
}

// createOnce makes a Secret that may exist already only because an earlier response was lost.
func (s *Store) createOnce(ctx context.Context, secret *corev1.Secret) error {
	_, uncertain, err := s.write(ctx, "creating Secret "+secret.Name, secret, s.create)
	if uncertain && apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func (s *Store) remove(ctx context.Context, name types.NamespacedName) error {
	s.preload.Changed(name)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
	_, err := s.do(ctx, "deleting Secret "+name.Name, func(ctx context.Context) error {
		return client.IgnoreNotFound(s.client.Delete(ctx, secret))
	})
	return err
}

// removeProtected removes a Secret with the finalizer.
func (s *Store) removeProtected(ctx context.Context, name types.NamespacedName) error {
	for attempt := 1; ; attempt++ {
		secret, err := s.secret(ctx, name)
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if controllerutil.RemoveFinalizer(secret, Finalizer) {
			_, _, err = s.write(ctx, "releasing Secret "+name.Name, secret, s.update)
		}
		if err == nil || apierrors.IsNotFound(err) {
			return s.remove(ctx, name)
		}
		if !apierrors.IsConflict(err) {
			return err
		}
		if !s.wait(ctx, attempt, err) {
			return &UnavailableError{Doing: "releasing Secret " + name.Name, Err: err}
		}
	}
}
