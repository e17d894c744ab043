package pulumi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

const (
	// signature marks an object in a checkpoint that represents another kind of value; secretSignature
	// marks a secret.
	signature       = "4dabf18193072939515e22adb298388d"
	secretSignature = "1b47061264138c4ac30d75fd1eb44270"
	passphraseType  = "passphrase"
	secretsField    = "secrets_providers"
)

// errNotAsPulumi replaces a decoder's error about a value, which may contain the value.
var errNotAsPulumi = errors.New("not in Pulumi's format")

// secretsProvider describes a checkpoint's encryption.
type secretsProvider struct {
	Type  string `json:"type"`
	State struct {
		Salt string `json:"salt"`
	} `json:"state"`
}

// SaltOf returns the salt of a checkpoint's key, or "" if the checkpoint is empty.
func SaltOf(checkpoint []byte) (string, error) {
	read, err := readCheckpoint(checkpoint)
	if err != nil {
		return "", err
	}
	return read.salt()
}

func (c *checkpoint) salt() (string, error) {
	var provider *secretsProvider
	if decode(c.latest[secretsField], &provider) != nil {
		return "", fmt.Errorf("reading the encryption of the checkpoint: %w", errNotAsPulumi)
	}
	if provider == nil {
		return "", nil
	}
	if provider.Type != passphraseType || provider.State.Salt == "" {
		return "",
			fmt.Errorf("the checkpoint is encrypted by %q instead of a passphrase; run 'pulumi stack change-secrets-provider passphrase'", provider.Type)
	}
	return provider.State.Salt, nil
}

// Rekey returns a checkpoint with every encrypted value decrypted with one key and encrypted with
// another. It returns the checkpoint unchanged if it is encrypted with the other key already, or
// not at all.
func Rekey(checkpoint []byte, from, to *Key) ([]byte, error) {
	read, err := readCheckpoint(checkpoint)
	if err != nil {
		return nil, err
	}
	salt, err := read.salt()
	switch {
	case err != nil:
		return nil, err
	case salt == "" || salt == to.salt:
		return checkpoint, nil
	case salt != from.salt:
		return nil, errors.New("re-encrypting a checkpoint: it is encrypted with another key than the given one")
	}
	latest, err := (&rekeying{from: from, to: to}).tree(read.Checkpoint["latest"])
	if err != nil {
		return nil, fmt.Errorf("re-encrypting a checkpoint: %w", err)
	}
	// Write the same tree that was walked. Decoding it into a struct could drop fields.
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(latest, &fields); err != nil {
		return nil, fmt.Errorf("re-encrypting a checkpoint: %w", errNotAsPulumi)
	}
	provider := secretsProvider{Type: passphraseType}
	provider.State.Salt = to.salt
	if fields[secretsField], err = json.Marshal(provider); err != nil {
		return nil, fmt.Errorf("re-encrypting a checkpoint: %w", err)
	}
	if read.Checkpoint["latest"], err = json.Marshal(fields); err != nil {
		return nil, fmt.Errorf("re-encrypting a checkpoint: %w", err)
	}
	read.latest = nil // it is encoded already
	return read.encode()
}

// rekeying walks JSON.
type rekeying struct{ from, to *Key }

func (k *rekeying) tree(raw json.RawMessage) (json.RawMessage, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber() // keeps large numbers exact
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, errNotAsPulumi
	}
	if err := k.walk(value); err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

func (k *rekeying) walk(value any) error {
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			if err := k.walk(element); err != nil {
				return err
			}
		}
	case map[string]any:
		if value[signature] == secretSignature {
			return k.secret(value)
		}
		for _, element := range value {
			if err := k.walk(element); err != nil {
				return err
			}
		}
	}
	return nil
}

func (k *rekeying) secret(object map[string]any) error {
	sealed, ok := object["ciphertext"].(string)
	if !ok {
		return nil // Pulumi was told to write it in plain text
	}
	plain, err := k.from.open(sealed)
	if err != nil {
		return err
	}
	object["ciphertext"], err = k.to.seal(plain)
	return err
}

// The passphrase crypter calls no service and does not block, so it needs no caller's context.

func (k *Key) seal(text string) (string, error) {
	return k.crypter.EncryptValue(context.TODO(), text)
}

func (k *Key) open(sealed string) (string, error) {
	plain, err := k.crypter.DecryptValue(context.TODO(), sealed)
	if err != nil {
		return "", errors.New("cannot decrypt a value with its key: the value was modified or truncated")
	}
	return plain, nil
}
