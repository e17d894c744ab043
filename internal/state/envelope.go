package state

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

const (
	// formatVersion is OpenTofu's only version.
	formatVersion = "v0"
	// keyProvider is the name that the key provider must have in the configuration of an OpenTofu that decrypts a
	// state.
	keyProvider = "machine_iac"
	// metaKey is OpenTofu's name for the key provider's metadata.
	metaKey = "key_provider.pbkdf2." + keyProvider
)

// versionField marks encrypted content.
var versionField = []byte(`"encryption_version"`)

// sealLabel is what OpenTofu stores in plain text beside an encrypted state. Other content has none.
type sealLabel struct {
	Serial  *uint64 `json:"serial,omitempty"`
	Lineage string  `json:"lineage,omitempty"`
}

// envelope is OpenTofu's format of an encrypted state.
type envelope struct {
	Version string `json:"encryption_version"`
	sealLabel
	Meta map[string][]byte `json:"meta"`
	Data []byte            `json:"encrypted_data"`
}

// IsEncrypted reports whether content is encrypted, with any key.
func IsEncrypted(content []byte) bool {
	if !bytes.Contains(content, versionField) {
		return false
	}
	var head struct {
		Version string `json:"encryption_version"`
	}
	return json.Unmarshal(content, &head) == nil && head.Version != ""
}

// Encrypt encrypts content with the first key. The nonce is random.
func (k *Keys) Encrypt(content []byte, label sealLabel) ([]byte, error) {
	if !k.Encrypts() {
		return nil, errors.New("encrypting: there is no key")
	}
	with := k.forEncryption()
	aead, err := k.aead(0, with)
	if err != nil {
		return nil, fmt.Errorf("encrypting: %w", err)
	}
	kept, err := json.Marshal(with)
	if err != nil {
		return nil, fmt.Errorf("encrypting: %w", err)
	}
	sealed := make([]byte, aead.NonceSize(), aead.NonceSize()+len(content)+aead.Overhead())
	_, _ = rand.Read(sealed) // never fails: it crashes the process instead
	sealed = aead.Seal(sealed, sealed, content, nil)
	raw, err := json.Marshal(envelope{Version: formatVersion, sealLabel: label, Meta: map[string][]byte{metaKey: kept},
		Data: sealed})
	if err != nil {
		return nil, fmt.Errorf("encrypting: %w", err)
	}
	return raw, nil
}

// Decrypt decrypts content for which IsEncrypted is true. first reports whether the current key encrypted it. The error
// does not quote the content.
func (k *Keys) Decrypt(encrypted []byte) (content []byte, first bool, err error) {
	var read envelope
	if json.Unmarshal(encrypted, &read) != nil || read.Version != formatVersion {
		return nil, false, fmt.Errorf("it is encrypted in the unknown format %.20q", read.Version)
	}
	if k == nil || len(k.passphrases) == 0 {
		return nil, false, errors.New("it is encrypted, and there is no key: set --state-key-file to the key that it " +
			"was encrypted with")
	}
	var problem error
	for _, name := range slices.Sorted(maps.Keys(read.Meta)) {
		with, err := parseParameters(read.Meta[name])
		if err != nil {
			problem = err
			continue
		}
		for passphrase := range k.passphrases {
			if content, err := k.open(passphrase, with, read.Data); err == nil {
				return content, passphrase == 0 && k.Encrypts(), nil
			}
		}
		problem = fmt.Errorf("no key of --state-key-file (%d) opens it: add the key that it was encrypted with to "+
			"the folder, or put the Secret back from a backup if somebody has changed it",
			len(k.passphrases))
		break
	}
	if problem == nil {
		problem = errors.New("nothing says how its key is derived")
	}
	return nil, false, fmt.Errorf("it is encrypted, and %w", problem)
}

func (k *Keys) open(passphrase int, with *parameters, sealed []byte) ([]byte, error) {
	aead, err := k.aead(passphrase, with)
	if err != nil {
		return nil, err
	}
	if len(sealed) < aead.NonceSize() {
		return nil, errors.New("it is too short")
	}
	content, err := aead.Open(nil, sealed[:aead.NonceSize()], sealed[aead.NonceSize():], nil)
	if err == nil {
		k.opened(passphrase, with)
	}
	return content, err
}
