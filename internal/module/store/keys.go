package store

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-iac/machine-iac-operator/internal/keyfile"
)

const (
	// AnnotationSignature is the annotation with the proof that a manager with a key has stored the
	// content: hmac-sha256: and the MAC in hex.
	AnnotationSignature = "machine-iac.io/module-signature"

	signaturePrefix = "hmac-sha256:"
	// signedContext separates these MACs from others made with the same key.
	signedContext = "machine-iac.io/module-content/v1\x00"

	minKeyBytes, maxKeyBytes = 32, 64 << 10
)

// Keys prove which content was stored by a holder of the keys rather than by somebody else. The
// first key signs, all verify.
type Keys struct{ secrets [][]byte }

// ReadKeys reads a key from a file, or keys from the files of a folder, sorted by name. A key is at
// least 32 random bytes, used as they are in the file.
func ReadKeys(name string) (*Keys, error) {
	read, err := keyfile.Read(name, maxKeyBytes)
	if err != nil {
		return nil, fmt.Errorf("reading the key of modules: %w", err)
	}
	keys := &Keys{}
	for _, key := range read {
		if size := len(key.Content); size < minKeyBytes || size > maxKeyBytes {
			return nil,
				fmt.Errorf("reading the key of modules %s: it has %d bytes, must be %d to %d; create a new one with 'openssl rand -out FILE 32'",
					key.File, size, minKeyBytes, maxKeyBytes)
		}
		keys.secrets = append(keys.secrets, key.Content)
	}
	return keys, nil
}

// code returns the MAC for the content with a digest.
func code(secret []byte, digest string) []byte {
	mac := hmac.New(sha256.New, secret)
	_, _ = io.WriteString(mac, signedContext+digest) // writing to a hash never fails
	return mac.Sum(nil)
}

// sign returns the proof for the content with a digest.
func (k *Keys) sign(digest string) string {
	return signaturePrefix + hex.EncodeToString(code(k.secrets[0], digest))
}

// verify reports whether a proof is valid for the content with a digest, and whether it was made
// with the current signing key.
func (k *Keys) verify(digest, signature string) (valid, current bool) {
	text, isCode := strings.CutPrefix(signature, signaturePrefix)
	given, err := hex.DecodeString(text)
	if !isCode || err != nil {
		return false, false
	}
	for i, secret := range k.secrets {
		if hmac.Equal(given, code(secret, digest)) {
			return true, i == 0
		}
	}
	return false, false
}

// proven reports whether the content of a head Secret was stored by a holder of a key.
func (k *Keys) proven(digest string, head *corev1.Secret) bool {
	if k == nil {
		return false
	}
	valid, _ := k.verify(digest, head.Annotations[AnnotationSignature])
	return valid
}
