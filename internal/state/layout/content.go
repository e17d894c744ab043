package layout

import (
	"bytes"
	"fmt"

	"github.com/machine-iac/machine-iac-operator/internal/state/encryption"
)

// Codec makes of content what Secrets have, and back: encrypted where there is a key for it, and compressed.
type Codec struct{ Keys *encryption.Keys }

// Content is what Secrets have, unpacked.
type Content struct {
	Raw []byte
	// Encrypted says that it was, and Current that it would be packed as it was.
	Encrypted, Current bool
}

// KeyError says that content is encrypted, and cannot be decrypted.
type KeyError struct{ Err error }

// Error implements error.
func (e *KeyError) Error() string { return e.Err.Error() }

// Unwrap returns why it cannot be decrypted.
func (e *KeyError) Unwrap() error { return e.Err }

// Pack returns what a Secret gets, and whether that is encrypted.
func (c Codec) Pack(raw []byte, label encryption.Label) (packed []byte, encrypted bool, err error) {
	if !c.Keys.Encrypts() {
		packed, err = Pack(raw)
		return packed, false, err
	}
	sealed, err := c.Keys.Encrypt(raw, label)
	if err != nil {
		return nil, false, err
	}
	packed, err = PackEncrypted(sealed)
	return packed, true, err
}

// Unpack reads what is encrypted and what is not, whatever Pack would do now. The error is a *KeyError where there is no key for it.
func (c Codec) Unpack(packed []byte) (Content, error) {
	raw, err := Unpack(packed)
	if err != nil {
		return Content{}, err
	}
	return c.Decrypt(raw)
}

// Decrypt is Unpack of what is not compressed.
func (c Codec) Decrypt(raw []byte) (Content, error) {
	found := Content{Raw: raw, Current: !c.Keys.Encrypts()}
	if encryption.Is(raw) {
		decrypted, first, err := c.Keys.Decrypt(raw)
		if err != nil {
			return Content{}, &KeyError{Err: err}
		}
		found = Content{Raw: decrypted, Encrypted: true, Current: first}
	}
	if len(found.Raw) > MaxUnpacked {
		return Content{}, ErrTooBig
	}
	return found, nil
}

// Open returns attachments as they were attached. Where nothing is encrypted they are what the Secret has.
func (c Codec) Open(stored map[string][]byte, encrypted bool) (map[string]Content, error) {
	opened := map[string]Content{}
	for name, packed := range stored {
		opened[name] = Content{Raw: packed, Current: !c.Keys.Encrypts()}
		if !encrypted || packed == nil {
			continue
		}
		raw, err := Unpack(packed)
		if err != nil || !encryption.Is(raw) {
			continue // it was attached as it is
		}
		if opened[name], err = c.Decrypt(raw); err != nil {
			return nil, err
		}
	}
	return opened, nil
}

// Seal makes of changes of attachments what a Secret gets that has some already, and refuses what has more bytes than limit then. encrypted says
// whether anything in it is encrypted: before, and then after the changes.
func (c Codec) Seal(have, changes map[string][]byte, encrypted bool, limit int) (sealed map[string][]byte, after bool, err error) {
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
		stored[name] = Content{Raw: raw, Encrypted: raw != nil && c.Keys.Encrypts()}
		switch {
		case raw == nil || !c.Keys.Encrypts():
			sealed[name] = raw
		case was.Encrypted && was.Current && bytes.Equal(was.Raw, raw):
			sealed[name] = have[name] // encrypted anew it would be another
		default:
			if sealed[name], _, err = c.Pack(raw, encryption.Label{}); err != nil {
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
