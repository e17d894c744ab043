package pulumi

import (
	"context"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/config"
)

const (
	passphraseBytes = 32
	saltBytes       = 8
	// rounds is how many times Pulumi hashes a passphrase.
	rounds = 1_000_000
	// proof is what Pulumi encrypts to detect a wrong passphrase.
	proof = "pulumi"
)

// Key encrypts the secrets in checkpoints. Deriving it takes a good part of a second, so keep and
// reuse it.
type Key struct {
	passphrase string
	salt       string
	derived    []byte
	crypter    config.Crypter
}

// NewKey generates a key.
func NewKey(ctx context.Context) (*Key, error) {
	random := make([]byte, passphraseBytes+saltBytes)
	if _, err := rand.Read(random); err != nil {
		return nil, fmt.Errorf("generating a key: %w", err)
	}
	passphrase := base64.RawURLEncoding.EncodeToString(random[:passphraseBytes])
	salt := random[passphraseBytes:]
	key, err := derive(passphrase, salt)
	if err != nil {
		return nil, fmt.Errorf("generating a key: %w", err)
	}
	sealed, err := key.crypter.EncryptValue(ctx, proof)
	if err != nil {
		return nil, fmt.Errorf("generating a key: %w", err)
	}
	key.salt = "v1:" + base64.StdEncoding.EncodeToString(salt) + ":" + sealed
	return key, nil
}

// derive derives the key of a passphrase as Pulumi does.
func derive(passphrase string, salt []byte) (*Key, error) {
	derived, err := pbkdf2.Key(sha256.New, passphrase, salt, rounds, config.SymmetricCrypterKeyBytes)
	if err != nil {
		return nil, fmt.Errorf("deriving the key from its passphrase: %w", err)
	}
	return &Key{passphrase: passphrase, derived: derived, crypter: config.NewSymmetricCrypter(derived)}, nil
}

// ReadKey restores a key from the Passphrase and Salt of an earlier one.
func ReadKey(ctx context.Context, passphrase, salt string) (*Key, error) {
	parts := strings.SplitN(salt, ":", 3)
	if passphrase == "" || len(parts) != 3 || parts[0] != "v1" {
		return nil, errors.New("reading a key: passphrase or salt is missing or not in Pulumi's format")
	}
	raw, err := base64.StdEncoding.DecodeString(parts[1])
	if err != nil {
		return nil, errors.New("reading a key: the salt is not base64")
	}
	key, err := derive(passphrase, raw)
	if err != nil {
		return nil, fmt.Errorf("reading a key: %w", err)
	}
	if opened, err := key.crypter.DecryptValue(ctx, parts[2]); err != nil || opened != proof {
		return nil, errors.New("reading a key: the passphrase does not match the salt")
	}
	key.salt = salt
	return key, nil
}

// Passphrase returns the PULUMI_CONFIG_PASSPHRASE for reading checkpoints by hand.
func (k *Key) Passphrase() string { return k.passphrase }

// Salt returns the encryptionsalt of a stack's settings.
func (k *Key) Salt() string { return k.salt }
