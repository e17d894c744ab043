package state

import (
	"context"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// attachmentPrefix starts the keys of a head's data that belong to this project beside the state.
const attachmentPrefix = "machine-iac."

// MaxAttachmentBytes bounds the attachments of a state together: what a Secret has room for beside the largest part of a state.
const MaxAttachmentBytes = 48 << 10

// Attachments are what is kept with a state that is as secret as the state, by name. In a change, nil removes one, and those that are
// not named stay.
type Attachments map[string][]byte

// Attach changes what is kept with the state, in the session's next SetMeta or Release. It refuses what has no room.
func (s *Session) Attach(ctx context.Context, attached Attachments) error {
	ctx, cancel := s.store.bounded(ctx)
	defer cancel()
	leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	sealed, encrypted, err := s.store.seal(s.key, s.pendingAttachments(), attached, s.edit().index.EncryptedData)
	if err != nil {
		return fmt.Errorf("attaching to state %s: %w", s.key, err)
	}
	changed := Attachments{} // a new one: a write whose response was lost has the old one
	maps.Copy(changed, s.attached)
	maps.Copy(changed, sealed)
	s.attached, s.encryptedData = changed, encrypted
	return nil
}

// apply makes the attachments of head what the change wants.
func (a Attachments) apply(head *corev1.Secret) {
	for name, content := range a {
		if content == nil {
			delete(head.Data, attachmentPrefix+name)
			continue
		}
		if head.Data == nil {
			head.Data = map[string][]byte{}
		}
		head.Data[attachmentPrefix+name] = content
	}
}

func attachmentsOf(head *corev1.Secret) Attachments {
	found := Attachments{}
	for key, content := range head.Data {
		if name, ok := strings.CutPrefix(key, attachmentPrefix); ok {
			found[name] = content
		}
	}
	return found
}
