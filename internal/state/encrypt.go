package state

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-iac/machine-iac-operator/internal/state/encryption"
	"github.com/machine-iac/machine-iac-operator/internal/state/layout"
	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

// EncryptedError says that what is stored of a state is encrypted, and cannot be decrypted here.
type EncryptedError struct {
	// Key of the state.
	Key Key
	// Err says why, and how to fix it.
	Err error
}

func (e *EncryptedError) Error() string {
	return fmt.Sprintf("state %s cannot be read: %v", e.Key, e.Err)
}

// Unwrap returns why it cannot be decrypted.
func (e *EncryptedError) Unwrap() error { return e.Err }

// unreadable is the error of a state that cannot be unpacked.
func unreadable(key Key, err error) error {
	if lost, ok := errors.AsType[*layout.KeyError](err); ok {
		return &EncryptedError{Key: key, Err: lost.Err}
	}
	return &CorruptError{Key: key, Detail: err.Error()}
}

// incoming returns a state as it is to be stored.
func (s *Store) incoming(parsed *statefile.State, raw []byte) (layout.Incoming, error) {
	packed, encrypted, err := s.codec.Pack(raw, encryption.Label{Serial: &parsed.Serial, Lineage: parsed.Lineage})
	return layout.Incoming{State: parsed, Raw: slices.Clone(raw), Packed: packed, Encrypted: encrypted, At: s.options.Clock.Now()}, err
}

// unpack returns a state from what Secrets have.
func (s *Store) unpack(key Key, packed []byte) ([]byte, error) {
	found, err := s.codec.Unpack(packed)
	if err != nil {
		return nil, unreadable(key, err)
	}
	return found.Raw, nil
}

// opened returns what is attached to a head.
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

// seal makes of changes of attachments what a Secret gets that has some already: see layout.Codec.
func (s *Store) seal(key Key, have, changes Attachments, encrypted bool) (Attachments, bool, error) {
	sealed, after, err := s.codec.Seal(have, changes, encrypted, MaxAttachmentBytes)
	if _, lost := errors.AsType[*layout.KeyError](err); lost {
		err = unreadable(key, err)
	}
	return sealed, after, err
}

// Outdated reports whether something of a state would be written otherwise now: encrypted, with another key, or no more. Without keys nothing is.
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

// rewritten is a state with all that is kept of it, as it would be written now.
type rewritten struct {
	outdated bool
	// versions are the earlier ones and the current one, oldest first.
	versions    []layout.Rewritten
	attachments Attachments
	encrypted   bool
}

// rewrite packs all that is kept of a state as it would be now. An earlier version whose key is lost stays as it is; one that is damaged is left out.
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

// add packs one version as it would be now.
func (r *rewritten) add(s *Store, key Key, e layout.Entry, packed []byte) error {
	found, err := s.codec.Unpack(packed)
	_, lost := errors.AsType[*layout.KeyError](err)
	switch {
	case lost:
	case err != nil:
		return unreadable(key, err)
	case !found.Current:
		r.outdated = true
		if packed, e.Encrypted, err = s.codec.Pack(found.Raw, encryption.Label{Serial: &e.Serial, Lineage: e.Lineage}); err != nil {
			return err
		}
	}
	r.versions = append(r.versions, layout.Rewritten{Entry: e, Packed: packed})
	return nil
}

// Rewrite writes the state, its earlier versions and what is attached as they would be written now, under the serials that they have: after the key
// was replaced, or encryption switched on or off. It succeeds without a write where nothing is outdated.
func (s *Session) Rewrite(ctx context.Context) error {
	ctx, cancel := s.store.bounded(ctx)
	defer cancel()
	leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	next, err := s.store.rewrite(ctx, s.key, &view{head: s.head, index: s.index, raw: s.raw, packed: s.packed})
	if err != nil || !next.outdated {
		return err
	}
	planned := layout.Plan{Index: s.index}
	if s.index.Current != nil {
		planned = layout.PlanRewrite(s.index, next.versions, s.store.options.layout(), s.newBlob)
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

// attach makes the attachments of options those of an edit.
func (s *Store) attach(key Key, head *corev1.Secret, change *edit, attached Attachments) (err error) {
	change.attachments, change.index.EncryptedData, err = s.seal(key, attachmentsOf(head), attached, change.index.EncryptedData)
	return err
}

// pendingAttachments are those of the head with changes that go with the next write.
func (s *Session) pendingAttachments() Attachments {
	all := attachmentsOf(s.head)
	maps.Copy(all, s.attached)
	return all
}
