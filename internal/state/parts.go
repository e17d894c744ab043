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
)

// newBlob names a copy. Names are never reused, so no other session's cleanup can delete it.
func (s *Session) newBlob(e indexEntry, chunks int) indexBlob {
	unique := make([]byte, 6)
	_, _ = rand.Read(unique) // never fails: it crashes the process instead
	name := fmt.Sprintf("%s%s%d-%s", s.key.Name, blobInfix, e.Serial, hex.EncodeToString(unique))
	return indexBlob{Name: name, Chunks: chunks}
}

// stage writes copies before the commit that refers to them. The head lists them as trash first, so
// that copies left by a crash can be found.
func (s *Session) stage(ctx context.Context, copies []stagedWrite) error {
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
		for i, chunk := range splitChunks(c.Payload, s.store.options.ChunkBytes) {
			secret := s.newSecret(c.Blob.Chunk(i), RoleVersion, chunk)
			secret.Immutable = ptr.To(true)
			// otherwise deleting the namespace would delete them before the head
			secret.Finalizers = []string{Finalizer}
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

// abandon deletes the copies of a commit for which the session was fenced: the new owner may have
// cleaned up before the copies were written. It keeps copies that a version refers to, since the
// commit may have succeeded.
func (s *Session) abandon(ctx context.Context, copies []stagedWrite) {
	var known headIndex
	fresh, err := s.store.head(ctx, s.key)
	if err == nil {
		known, err = decodeIndex(fresh.Annotations)
	}
	if err != nil && !errors.Is(err, ErrNotFound) {
		return
	}
	for _, c := range copies {
		if known.Reads(c.Blob) {
			continue
		}
		for i := range c.Blob.Chunks {
			if err := s.store.removeProtected(ctx,
				types.NamespacedName{Namespace: s.key.Namespace, Name: c.Blob.Chunk(i)}); err != nil {
				s.store.options.Logger.Info("Unreferenced copy of a state is left behind", "secret", c.Blob.Chunk(i),
					"reason",
					err.Error())
				return
			}
		}
	}
}

// tidyOrLater runs tidy. A failure is harmless: the record lists what is left to do, and the next
// session does it.
func (s *Session) tidyOrLater(ctx context.Context) {
	if err := s.tidy(ctx); err != nil {
		s.store.options.Logger.Info("Cleanup of parts and copies of a state is left to the next session", "state",
			s.key.String(), "reason", err.Error())
	}
}

// tidy makes the Secrets besides the head match the record. The next write of the head records
// that.
func (s *Session) tidy(ctx context.Context) error {
	if s.index.Tidy() {
		return nil
	}
	if s.pending != nil {
		return errors.New("a pending write may still need them")
	}
	if s.index.Untidy {
		if err := s.tidyParts(ctx); err != nil {
			return err
		}
	}
	if s.late {
		return errors.New("a copy may still be created")
	}
	secrets := 0
	for i, b := range s.index.Trash {
		if secrets += b.Chunks; secrets > MaxChunks {
			s.index.Trash = s.index.Trash[i:]
			return fmt.Errorf("%d copies are left for the next session", len(s.index.Trash))
		}
		if !strings.HasPrefix(b.Name, s.key.Name+blobInfix) {
			continue // not a name that this store makes: do not let an edited record delete other Secrets
		}
		for i := range b.Chunks {
			if err := s.store.removeProtected(ctx,
				types.NamespacedName{Namespace: s.key.Namespace, Name: b.Chunk(i)}); err != nil {
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
		if err := s.store.remove(ctx,
			types.NamespacedName{Namespace: s.key.Namespace, Name: s.key.part(i)}); err != nil {
			return err
		}
	}
	if chunks < 2 || s.index.Current.Blob == nil {
		return nil
	}
	size := len(s.head.Data[dataState]) // as it was cut, whatever the limit is now
	for i, chunk := range splitChunks(s.packed, size)[1:] {
		if err := s.writePart(ctx, i+1, chunk); err != nil {
			return err
		}
	}
	return nil
}

// writePart writes one part as Terraform does. It does not replace a part of a newer state, whose
// writer has fenced this session.
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
	if serial, err := strconv.ParseUint(have.Annotations[annotationSerial], 10, 64); err == nil &&
		serial > s.index.Current.Serial {
		return fmt.Errorf("writing part %s: it belongs to the newer serial %d", wanted.Name, serial)
	}
	if bytes.Equal(have.Data[dataState], chunk) {
		return nil
	}
	wanted.ResourceVersion = have.ResourceVersion
	_, _, err = s.store.write(ctx, "writing Secret "+wanted.Name, wanted, s.store.update)
	return err
}

// createOnce creates a Secret. If an earlier response was lost, it may exist already.
func (s *Store) createOnce(ctx context.Context, secret *corev1.Secret) error {
	_, uncertain, err := s.write(ctx, "creating Secret "+secret.Name, secret, s.create)
	if uncertain && apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func (s *Store) remove(ctx context.Context, name types.NamespacedName) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
	_, err := s.do(ctx, "deleting Secret "+name.Name, func(ctx context.Context) error {
		return client.IgnoreNotFound(s.client.Delete(ctx, secret))
	})
	return err
}

// removeProtected deletes a Secret that has the finalizer.
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
