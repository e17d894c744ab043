package pulumi

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/config"
)

const (
	passphraseBytes = 32
	saltBytes       = 8
	// proof is what Pulumi encrypts to detect a wrong passphrase.
	proof = "pulumi"
)

// Key is what secrets in checkpoints are encrypted with. Deriving it takes a good part of a second, so keep one and use it for all.
type Key struct {
	passphrase string
	salt       string
	crypter    config.Crypter
}

// NewKey makes a key from nothing.
func NewKey(ctx context.Context) (*Key, error) {
	random := make([]byte, passphraseBytes+saltBytes)
	if _, err := rand.Read(random); err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	passphrase := base64.RawURLEncoding.EncodeToString(random[:passphraseBytes])
	salt := random[passphraseBytes:]
	crypter := config.NewSymmetricCrypterFromPassphrase(passphrase, salt)
	sealed, err := crypter.EncryptValue(ctx, proof)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	return &Key{passphrase: passphrase, salt: "v1:" + base64.StdEncoding.EncodeToString(salt) + ":" + sealed, crypter: crypter}, nil
}

// ReadKey reads what Passphrase and Salt of a key returned.
func ReadKey(ctx context.Context, passphrase, salt string) (*Key, error) {
	parts := strings.SplitN(salt, ":", 3)
	if passphrase == "" || len(parts) != 3 || parts[0] != "v1" {
		return nil, errors.New("reading a key: passphrase or salt is missing or not as Pulumi writes it")
	}
	raw, err := base64.StdEncoding.DecodeString(parts[1])
	if err != nil {
		return nil, errors.New("reading a key: its salt is not base64")
	}
	crypter := config.NewSymmetricCrypterFromPassphrase(passphrase, raw)
	if opened, err := crypter.DecryptValue(ctx, parts[2]); err != nil || opened != proof {
		return nil, errors.New("reading a key: the passphrase is not the salt's")
	}
	return &Key{passphrase: passphrase, salt: salt, crypter: crypter}, nil
}

// Passphrase returns what PULUMI_CONFIG_PASSPHRASE must be to read checkpoints by hand.
func (k *Key) Passphrase() string { return k.passphrase }

// Salt returns the encryptionsalt of a stack's settings.
func (k *Key) Salt() string { return k.salt }
