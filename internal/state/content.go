package state

import (
	"bytes"
	"fmt"

	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

// contentCodec converts content to the form in Secrets and back: encrypted if there is a key for it, and compressed.
type contentCodec struct{ Keys *Keys }

// storedContent is unpacked content.
type storedContent struct {
	Raw []byte
	// Encrypted reports that the content was encrypted, Current that Pack would pack it the same way.
	Encrypted, Current bool
}

// keyError means that content cannot be decrypted.
type keyError struct{ Err error }

// Error implements error.
func (e *keyError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *keyError) Unwrap() error { return e.Err }

// Pack returns content for a Secret, and whether it is encrypted.
func (c contentCodec) Pack(raw []byte, label sealLabel) (packed []byte, encrypted bool, err error) {
	if !c.Keys.Encrypts() {
		packed, err = packPlain(raw)
		return packed, false, err
	}
	sealed, err := c.Keys.Encrypt(raw, label)
	if err != nil {
		return nil, false, err
	}
	packed, err = packEncrypted(sealed)
	return packed, true, err
}

// Unpack reads encrypted and plain content, regardless of what Pack would do now. It returns a *keyError without the
// key.
func (c contentCodec) Unpack(packed []byte) (storedContent, error) {
	raw, err := unpackContent(packed)
	if err != nil {
		return storedContent{}, err
	}
	return c.Decrypt(raw)
}

// Decrypt is Unpack for uncompressed content.
func (c contentCodec) Decrypt(raw []byte) (storedContent, error) {
	if err := statefile.CheckValues(raw, statefile.MaxValues); err != nil {
		return storedContent{}, err
	}
	found := storedContent{Raw: raw, Current: !c.Keys.Encrypts()}
	if IsEncrypted(raw) {
		decrypted, first, err := c.Keys.Decrypt(raw)
		if err != nil {
			return storedContent{}, &keyError{Err: err}
		}
		found = storedContent{Raw: decrypted, Encrypted: true, Current: first}
	}
	if err := statefile.CheckSize(found.Raw); err != nil {
		return storedContent{}, err
	}
	return found, nil
}

// Open returns the original attachments. It returns unencrypted ones unchanged.
func (c contentCodec) Open(stored map[string][]byte, encrypted bool) (map[string]storedContent, error) {
	opened := map[string]storedContent{}
	for name, packed := range stored {
		opened[name] = storedContent{Raw: packed, Current: !c.Keys.Encrypts()}
		if !encrypted || packed == nil {
			continue
		}
		raw, err := unpack(packed, maxAttachment)
		if err != nil || !IsEncrypted(raw) {
			continue // attached unencrypted
		}
		if opened[name], err = c.Decrypt(raw); err != nil {
			return nil, err
		}
	}
	return opened, nil
}

// Seal applies changes to attachments, and fails if the total size then exceeds limit. encrypted and after report
// whether any attachment is encrypted before and after the changes.
func (c contentCodec) Seal(have, changes map[string][]byte, encrypted bool,
	limit int) (sealed map[string][]byte, after bool, err error) {
	if len(changes) == 0 {
		return nil, encrypted, nil
	}
	stored, err := c.Open(have, encrypted)
	if err != nil {
		return nil, false, err
	}
	sealed = map[string][]byte{}
	for name, raw := range changes {
		was := stored[name]
		stored[name] = storedContent{Raw: raw, Encrypted: raw != nil && c.Keys.Encrypts()}
		switch {
		case raw == nil || !c.Keys.Encrypts():
			sealed[name] = raw
		case was.Encrypted && was.Current && bytes.Equal(was.Raw, raw):
			sealed[name] = have[name] // encrypting again would change the bytes
		default:
			if sealed[name], _, err = c.Pack(raw, sealLabel{}); err != nil {
				return nil, false, err
			}
		}
	}
	total := 0
	for _, one := range stored {
		total += len(one.Raw)
		after = after || one.Encrypted
	}
	if total > limit {
		return nil, false, fmt.Errorf("%d bytes are more than the %d that there is room for", total, limit)
	}
	return sealed, after, nil
}
