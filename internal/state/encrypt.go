package state

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

// EncryptedError means that a stored state is encrypted and cannot be decrypted here.
type EncryptedError struct {
	// Key of the state.
	Key Key
	// Err is the reason, and how to fix it.
	Err error
}

func (e *EncryptedError) Error() string {
	return fmt.Sprintf("cannot read state %s: %v", e.Key, e.Err)
}

// Unwrap returns the reason.
func (e *EncryptedError) Unwrap() error { return e.Err }

// unreadable wraps the error of a state that cannot be unpacked.
func unreadable(key Key, err error) error {
	if lost, ok := errors.AsType[*keyError](err); ok {
		return &EncryptedError{Key: key, Err: lost.Err}
	}
	return &CorruptError{Key: key, Detail: err.Error()}
}

// incoming packs a state for storage.
func (s *Store) incoming(parsed *statefile.State, raw []byte) (incomingState, error) {
	packed, encrypted, err := s.codec.Pack(raw, sealLabel{Serial: &parsed.Serial, Lineage: parsed.Lineage})
	return incomingState{State: parsed, Raw: slices.Clone(raw), Packed: packed, Encrypted: encrypted,
		At: s.options.Clock.Now()}, err
}

// unpack returns the state from packed data.
func (s *Store) unpack(key Key, packed []byte) ([]byte, error) {
	found, err := s.codec.Unpack(packed)
	if err != nil {
		return nil, unreadable(key, err)
	}
	return found.Raw, nil
}

// opened returns the decrypted attachments of a head.
func (s *Store) opened(key Key, v *view) (Attachments, error) {
	contents, err := s.codec.Open(attachmentsOf(v.head), v.index.EncryptedData)
	if err != nil {
		return nil, unreadable(key, err)
	}
	found := Attachments{}
	for name, one := range contents {
		found[name] = one.Raw
	}
	return found, nil
}

// seal applies changes to attachments and encrypts them: see layout.Codec.
func (s *Store) seal(key Key, have, changes Attachments, encrypted bool) (Attachments, bool, error) {
	sealed, after, err := s.codec.Seal(have, changes, encrypted, MaxAttachmentBytes)
	if _, lost := errors.AsType[*keyError](err); lost {
		err = unreadable(key, err)
	}
	return sealed, after, err
}

// Outdated reports whether Rewrite would change the state: encrypt it, use another key, or decrypt
// it. It returns false without keys.
func (s *Store) Outdated(ctx context.Context, key Key) (bool, error) {
	if s.options.Keys == nil {
		return false, nil
	}
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	seen, err := s.read(ctx, key)
	if err != nil {
		return false, fmt.Errorf("getting state %s: %w", key, err)
	}
	next, err := s.rewrite(ctx, key, seen)
	if err != nil {
		return false, fmt.Errorf("getting state %s: %w", key, err)
	}
	return next.outdated, nil
}

// rewritten is a state with its earlier versions and attachments, packed with the current keys.
type rewritten struct {
	outdated bool
	// versions are the earlier versions and the current one, oldest first.
	versions    []rewrittenVersion
	attachments Attachments
	encrypted   bool
}

// rewrite packs a state and everything stored with it using the current keys. Earlier versions
// whose key is lost are kept as they are; damaged ones are dropped.
func (s *Store) rewrite(ctx context.Context, key Key, seen *view) (*rewritten, error) {
	next := &rewritten{}
	versions := seen.index.Versions
	if seen.index.Current == nil {
		versions = nil
	}
	for _, e := range slices.Backward(versions) {
		packed, err := s.payload(ctx, key, seen.head, e, e.Key)
		if _, damaged := errors.AsType[*CorruptError](err); damaged {
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := next.add(s, key, e, packed); err != nil {
			return nil, err
		}
	}
	if seen.index.Current != nil {
		if err := next.add(s, key, *seen.index.Current, seen.packed); err != nil {
			return nil, err
		}
	}
	have := attachmentsOf(seen.head)
	contents, err := s.codec.Open(have, seen.index.EncryptedData)
	if err != nil {
		return nil, unreadable(key, err)
	}
	changes := Attachments{}
	for name, one := range contents {
		if !one.Current && len(one.Raw) > 0 {
			changes[name] = one.Raw
		}
	}
	next.outdated = next.outdated || len(changes) > 0
	next.attachments, next.encrypted, err = s.seal(key, have, changes, seen.index.EncryptedData)
	return next, err
}

// add packs one version with the current keys.
func (r *rewritten) add(s *Store, key Key, e indexEntry, packed []byte) error {
	found, err := s.codec.Unpack(packed)
	_, lost := errors.AsType[*keyError](err)
	switch {
	case lost:
	case err != nil:
		return unreadable(key, err)
	case !found.Current:
		r.outdated = true
		if packed, e.Encrypted, err = s.codec.Pack(found.Raw,
			sealLabel{Serial: &e.Serial, Lineage: e.Lineage}); err != nil {
			return err
		}
	}
	r.versions = append(r.versions, rewrittenVersion{Entry: e, Packed: packed})
	return nil
}

// Rewrite writes the state, its earlier versions and its attachments with the current keys, after a
// key was rotated or encryption was switched on or off. Serials stay. It writes nothing if nothing
// is outdated.
func (s *Session) Rewrite(ctx context.Context) error {
	ctx, leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	next, err := s.store.rewrite(ctx, s.key, &view{head: s.head, index: s.index, raw: s.raw, packed: s.packed})
	if err != nil || !next.outdated {
		return err
	}
	planned := writePlan{Index: s.index}
	if s.index.Current != nil {
		planned = planRewrite(s.index, next.versions, s.store.options.layout(), s.newBlob)
	}
	if err := s.stage(ctx, planned.Stage); err != nil {
		return err
	}
	change := s.edit()
	change.index, change.data, change.attachments = planned.Index, planned.Data, merged(next.attachments, s.attached)
	change.index.EncryptedData = next.encrypted || s.attached != nil && s.encryptedData
	if count := len(next.versions); count > 0 {
		change.packed = next.versions[count-1].Packed
	}
	if err := s.commit(ctx, "rewriting state "+s.key.String(), change); err != nil {
		if errors.Is(err, ErrFenced) {
			s.abandon(ctx, planned.Stage)
		}
		return err
	}
	s.tidyOrLater(ctx)
	return nil
}

// attach adds the attachments to an edit.
func (s *Store) attach(key Key, head *corev1.Secret, change *edit, attached Attachments) (err error) {
	change.attachments, change.index.EncryptedData, err = s.seal(key, attachmentsOf(head), attached,
		change.index.EncryptedData)
	return err
}

// pendingAttachments returns the attachments of the head, with the changes of the next write
// applied.
func (s *Session) pendingAttachments() Attachments {
	all := attachmentsOf(s.head)
	maps.Copy(all, s.attached)
	return all
}
