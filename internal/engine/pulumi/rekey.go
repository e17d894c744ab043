package pulumi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

const (
	// signature marks an object in a checkpoint that represents a value of another kind, secretSignature says that it is a secret.
	signature       = "4dabf18193072939515e22adb298388d"
	secretSignature = "1b47061264138c4ac30d75fd1eb44270"
	passphraseType  = "passphrase"
	secretsField    = "secrets_providers"
)

// errNotAsPulumi is the cause where a value cannot be read: the decoder's own words may repeat what is in it.
var errNotAsPulumi = errors.New("it is not as Pulumi writes it")

// secretsProvider says in a checkpoint with what it is encrypted.
type secretsProvider struct {
	Type  string `json:"type"`
	State struct {
		Salt string `json:"salt"`
	} `json:"state"`
}

// SaltOf returns the salt of the key that a checkpoint is encrypted with, "" for one with nothing in it.
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
		return "", fmt.Errorf("reading what the checkpoint is encrypted with: %w", errNotAsPulumi)
	}
	if provider == nil {
		return "", nil
	}
	if provider.Type != passphraseType || provider.State.Salt == "" {
		return "", fmt.Errorf("the checkpoint is encrypted by %q and not with a passphrase; 'pulumi stack change-secrets-provider passphrase' fixes that", provider.Type)
	}
	return provider.State.Salt, nil
}

// Rekey returns a checkpoint with every encrypted value in it, decrypted with one key and encrypted with another. The values stay what they
// are. A checkpoint that is encrypted with the other key already, or with none, is returned as it is.
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
		return nil, errors.New("encrypting a checkpoint anew: it is not encrypted with the key that is to open it")
	}
	latest, err := (&rekeying{from: from, to: to}).tree(read.Checkpoint["latest"])
	if err != nil {
		return nil, fmt.Errorf("encrypting a checkpoint anew: %w", err)
	}
	// The tree that was walked is what is written, so nothing of it is read into fields that might leave something out.
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(latest, &fields); err != nil {
		return nil, fmt.Errorf("encrypting a checkpoint anew: %w", errNotAsPulumi)
	}
	provider := secretsProvider{Type: passphraseType}
	provider.State.Salt = to.salt
	if fields[secretsField], err = json.Marshal(provider); err != nil {
		return nil, fmt.Errorf("encrypting a checkpoint anew: %w", err)
	}
	if read.Checkpoint["latest"], err = json.Marshal(fields); err != nil {
		return nil, fmt.Errorf("encrypting a checkpoint anew: %w", err)
	}
	read.latest = nil // it is encoded already
	return read.encode()
}

// rekeying walks through JSON.
type rekeying struct{ from, to *Key }

func (k *rekeying) tree(raw json.RawMessage) (json.RawMessage, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber() // a large number stays what it is
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
		return nil // Pulumi was asked to write it in plain text
	}
	plain, err := k.from.open(sealed)
	if err != nil {
		return err
	}
	object["ciphertext"], err = k.to.seal(plain)
	return err
}

// The crypter of a passphrase calls no service and takes no time, so it needs no context of a caller.

func (k *Key) seal(text string) (string, error) {
	return k.crypter.EncryptValue(context.TODO(), text)
}

func (k *Key) open(sealed string) (string, error) {
	plain, err := k.crypter.DecryptValue(context.TODO(), sealed)
	if err != nil {
		return "", errors.New("an encrypted value cannot be opened with its key; it was changed, or cut")
	}
	return plain, nil
}
