package encryption

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/machine-iac/machine-iac-operator/internal/keyfile"
)

// A key is a line of text, since OpenTofu takes it as a string of its configuration.
const minKeyBytes, maxKeyBytes = 32, 4 << 10

// digestContext keeps a digest apart from any other that somebody makes with the same key.
const digestContext = "machine-iac.io/state-digest/v1\x00"

// Keys encrypt and decrypt. The first encrypts, all decrypt. They are safe for concurrent use; nil are no keys.
type Keys struct {
	passphrases [][]byte
	plain       bool

	mu      sync.Mutex
	derived map[derivation]*cryptKey
	// current is what the first passphrase encrypts with, nil before it is known.
	current *parameters
}

// Read reads a key from a file, or keys from the files of a folder, by their names in order. A key is a line of text of at least 32 bytes, which
// must be random; the end of the line is no part of it.
func Read(name string) (*Keys, error) {
	read, err := keyfile.Read(name, maxKeyBytes+2)
	if err != nil {
		return nil, fmt.Errorf("reading the key of states: %w", err)
	}
	keys := &Keys{derived: map[derivation]*cryptKey{}}
	for _, key := range read {
		passphrase := bytes.TrimSuffix(bytes.TrimSuffix(key.Content, []byte("\n")), []byte("\r"))
		if err := checkPassphrase(passphrase); err != nil {
			return nil, fmt.Errorf("reading the key of states %s: %w; write a new one with 'openssl rand -base64 32 >FILE'", key.File, err)
		}
		keys.passphrases = append(keys.passphrases, passphrase)
	}
	return keys, nil
}

func checkPassphrase(passphrase []byte) error {
	switch {
	case len(passphrase) < minKeyBytes || len(passphrase) > maxKeyBytes:
		return fmt.Errorf("it has %d bytes and must have %d to %d", len(passphrase), minKeyBytes, maxKeyBytes)
	case !utf8.Valid(passphrase) || strings.ContainsFunc(string(passphrase), func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("it must be one line of printable text")
	}
	return nil
}

// DecryptOnly returns the same keys, which encrypt nothing any more.
func (k *Keys) DecryptOnly() *Keys {
	if k == nil {
		return nil
	}
	return &Keys{passphrases: k.passphrases, plain: true, derived: map[derivation]*cryptKey{}}
}

// Encrypts reports whether what is written is to be encrypted.
func (k *Keys) Encrypts() bool { return k != nil && !k.plain }

// Digest returns a name for content that only whoever has the key can compare with content. Without keys that encrypt it is the SHA-256.
func (k *Keys) Digest(content []byte) string {
	if !k.Encrypts() {
		sum := sha256.Sum256(content)
		return hex.EncodeToString(sum[:])
	}
	mac := hmac.New(sha256.New, k.passphrases[0])
	_, _ = io.WriteString(mac, digestContext) // a hash never fails to write
	_, _ = mac.Write(content)
	return hex.EncodeToString(mac.Sum(nil))
}
