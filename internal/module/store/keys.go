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
	// AnnotationSignature is the annotation for the proof that a manager with a key has kept the content: hmac-sha256: and the code in hex.
	AnnotationSignature = "machine-iac.io/module-signature"

	signaturePrefix = "hmac-sha256:"
	// signedContext keeps a code apart from any other that somebody makes with the same key.
	signedContext = "machine-iac.io/module-content/v1\x00"

	minKeyBytes, maxKeyBytes = 32, 64 << 10
)

// Keys prove which content was kept by whoever has them, and which was put there by somebody else. The first signs, all verify.
type Keys struct{ secrets [][]byte }

// ReadKeys reads a key from a file, or keys from the files of a folder, by their names in order. A key is at least 32 bytes, which must be
// random, and is taken as it is in the file.
func ReadKeys(name string) (*Keys, error) {
	read, err := keyfile.Read(name, maxKeyBytes)
	if err != nil {
		return nil, fmt.Errorf("reading the key of modules: %w", err)
	}
	keys := &Keys{}
	for _, key := range read {
		if size := len(key.Content); size < minKeyBytes || size > maxKeyBytes {
			return nil, fmt.Errorf("reading the key of modules %s: it has %d bytes and must have %d to %d; write a new one with 'openssl rand -out FILE 32'",
				key.File, size, minKeyBytes, maxKeyBytes)
		}
		keys.secrets = append(keys.secrets, key.Content)
	}
	return keys, nil
}

// code authenticates the content that has a digest.
func code(secret []byte, digest string) []byte {
	mac := hmac.New(sha256.New, secret)
	_, _ = io.WriteString(mac, signedContext+digest) // a hash never fails to write
	return mac.Sum(nil)
}

// sign returns the proof for the content with a digest.
func (k *Keys) sign(digest string) string {
	return signaturePrefix + hex.EncodeToString(code(k.secrets[0], digest))
}

// verify reports whether a proof is of the content with a digest, and whether the key has made it that signs now.
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

// proven reports whether the content that a Secret says to hold the head of was kept by whoever has a key.
func (k *Keys) proven(digest string, head *corev1.Secret) bool {
	if k == nil {
		return false
	}
	valid, _ := k.verify(digest, head.Annotations[AnnotationSignature])
	return valid
}
