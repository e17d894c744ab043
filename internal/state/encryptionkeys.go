package state

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

// A key is a line of text, because OpenTofu's configuration takes a string.
const minKeyBytes, maxKeyBytes = 32, 4 << 10

// digestContext separates these digests from other uses of the same key.
const digestContext = "machine-iac.io/state-digest/v1\x00"

// Keys encrypt with the first key and decrypt with all. They are safe for concurrent use. Nil has no keys.
type Keys struct {
	passphrases [][]byte
	plain       bool

	mu      sync.Mutex
	derived map[derivation]*cryptKey
	// current are the parameters for encryption with the first passphrase; nil until known.
	current *parameters
}

// ReadKeys reads a key from a file, or keys from the files of a folder, sorted by name. A key is a line of at least 32
// random bytes of text, without the line end.
func ReadKeys(name string) (*Keys, error) {
	read, err := keyfile.Read(name, maxKeyBytes+2)
	if err != nil {
		return nil, fmt.Errorf("reading the key of states: %w", err)
	}
	keys := &Keys{derived: map[derivation]*cryptKey{}}
	for _, key := range read {
		passphrase := bytes.TrimSuffix(bytes.TrimSuffix(key.Content, []byte("\n")), []byte("\r"))
		if err := checkPassphrase(passphrase); err != nil {
			return nil, fmt.Errorf("reading the key of states %s: %w; write a new one with 'openssl rand -base64 32 "+
				">FILE'", key.File, err)
		}
		keys.passphrases = append(keys.passphrases, passphrase)
	}
	return keys, nil
}

func checkPassphrase(passphrase []byte) error {
	switch {
	case len(passphrase) < minKeyBytes || len(passphrase) > maxKeyBytes:
		return fmt.Errorf("it has %d bytes and must have %d to %d", len(passphrase), minKeyBytes, maxKeyBytes)
	case !utf8.Valid(passphrase) ||
		strings.ContainsFunc(string(passphrase), func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("it must be one line of printable text")
	}
	return nil
}

// DecryptOnly returns the same keys for decryption only.
func (k *Keys) DecryptOnly() *Keys {
	if k == nil {
		return nil
	}
	return &Keys{passphrases: k.passphrases, plain: true, derived: map[derivation]*cryptKey{}}
}

// Encrypts reports whether new content is encrypted.
func (k *Keys) Encrypts() bool { return k != nil && !k.plain }

// Digest returns a digest of content that is useless without the key. Without encryption it is the SHA-256.
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
