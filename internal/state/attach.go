package state

import (
	"context"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// attachmentPrefix starts the data keys of a head that hold attachments.
const attachmentPrefix = "machine-iac."

// MaxAttachmentBytes limits the total size of a state's attachments. It is the room that a Secret
// has left beside the largest part of a state.
const MaxAttachmentBytes = 48 << 10

// Attachments are stored with a state, by name, and are as secret as the state. In a change, nil
// removes an attachment; names that are absent stay.
type Attachments map[string][]byte

// Attach changes the attachments with the session's next SetMeta or Release. It returns an error if
// they exceed MaxAttachmentBytes.
func (s *Session) Attach(ctx context.Context, attached Attachments) error {
	_, leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	sealed, encrypted, err := s.store.seal(s.key, s.pendingAttachments(), attached, s.edit().index.EncryptedData)
	if err != nil {
		return fmt.Errorf("attaching to state %s: %w", s.key, err)
	}
	changed := Attachments{} // a copy: a pending write still refers to the old map
	maps.Copy(changed, s.attached)
	maps.Copy(changed, sealed)
	s.attached, s.encryptedData = changed, encrypted
	return nil
}

// apply applies the changes to the head.
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
