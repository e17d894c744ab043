package state

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
)

// Parameters of new keys: OpenTofu's defaults.
const (
	iterations = 600_000
	hashSHA256 = "sha256"
	hashSHA512 = "sha512"
	keyLength  = 32
	saltLength = 32
)

// Bounds of stored parameters: a manipulated Secret must not use up CPU time.
const (
	maxIterations = 5_000_000
	maxSaltLength = 1 << 10
	maxDerived    = 256
)

// parameters are the metadata that OpenTofu's key provider pbkdf2 stores with encrypted content.
type parameters struct {
	Salt       []byte `json:"salt"`
	Iterations int    `json:"iterations"`
	Hash       string `json:"hash_function"`
	KeyLength  int    `json:"key_length"`
}

type derivation struct {
	passphrase       int
	salt, hash       string
	iterations, size int
}

// cryptKey is derived on first use.
type cryptKey struct {
	once sync.Once
	aead cipher.AEAD
	err  error
}

// parseParameters reads the parameters of a key. It rejects other key providers.
func parseParameters(raw []byte) (*parameters, error) {
	var read parameters
	if json.Unmarshal(raw, &read) != nil || len(read.Salt) == 0 || read.Iterations == 0 || read.Hash == "" ||
		read.KeyLength == 0 {
		return nil, errors.New(`its key is not one of OpenTofu's key_provider "pbkdf2", the only one that is supported`)
	}
	switch {
	case len(read.Salt) > maxSaltLength:
		return nil, fmt.Errorf("its salt has %d bytes, and may have %d", len(read.Salt), maxSaltLength)
	case read.Iterations < 0 || read.Iterations > maxIterations:
		return nil, fmt.Errorf("its key takes %d iterations, and may take %d", read.Iterations, maxIterations)
	case read.Hash != hashSHA256 && read.Hash != hashSHA512:
		return nil, fmt.Errorf("its key is derived with the unknown hash function %.20q", read.Hash)
	case read.KeyLength != 16 && read.KeyLength != 24 && read.KeyLength != 32:
		return nil, fmt.Errorf("its key has %d bytes, and may have 16, 24 or 32", read.KeyLength)
	}
	return &read, nil
}

// usual reports whether this package encrypts with such parameters.
func (p *parameters) usual() bool {
	return len(p.Salt) == saltLength && p.Iterations == iterations && p.Hash == hashSHA512 && p.KeyLength == keyLength
}

// forEncryption returns the parameters for encryption with the first passphrase. It reuses the salt found in encrypted
// content, so that one derived key serves all content, or else generates one.
func (k *Keys) forEncryption() *parameters {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.current == nil {
		k.current = &parameters{Salt: make([]byte, saltLength), Iterations: iterations, Hash: hashSHA512,
			KeyLength: keyLength}
		_, _ = rand.Read(k.current.Salt) // never fails: it crashes the process instead
	}
	return k.current
}

// opened chooses the parameters of decrypted content for encryption, unless already chosen.
func (k *Keys) opened(passphrase int, with *parameters) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.current == nil && passphrase == 0 && with.usual() {
		k.current = with
	}
}

// aead returns the cipher of a passphrase. The first call for a salt takes a few tenths of a second.
func (k *Keys) aead(passphrase int, with *parameters) (cipher.AEAD, error) {
	key := k.derivedKey(derivation{
		passphrase: passphrase, salt: string(with.Salt), hash: with.Hash, iterations: with.Iterations,
		size: with.KeyLength,
	})
	key.once.Do(func() { key.aead, key.err = derive(k.passphrases[passphrase], with) })
	return key.aead, key.err
}

func (k *Keys) derivedKey(name derivation) *cryptKey {
	k.mu.Lock()
	defer k.mu.Unlock()
	if found := k.derived[name]; found != nil {
		return found
	}
	if len(k.derived) >= maxDerived {
		clear(k.derived) // keys still in use are derived again
	}
	k.derived[name] = &cryptKey{}
	return k.derived[name]
}

func derive(passphrase []byte, with *parameters) (cipher.AEAD, error) {
	hash := sha512.New
	if with.Hash == hashSHA256 {
		hash = sha256.New
	}
	key, err := pbkdf2.Key(hash, string(passphrase), with.Salt, with.Iterations, with.KeyLength)
	if err != nil {
		return nil, fmt.Errorf("deriving the key: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("deriving the key: %w", err)
	}
	return cipher.NewGCM(block)
}
