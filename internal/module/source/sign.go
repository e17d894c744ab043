package source

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// ReadPrivateKey reads an ECDSA or Ed25519 key from a PEM file (PKCS #8 or SEC 1) without a
// passphrase.
func ReadPrivateKey(file string) (crypto.Signer, error) {
	block, err := readPEM(file)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if ec, ecErr := x509.ParseECPrivateKey(block.Bytes); ecErr == nil {
		key, err = ec, nil
	}
	switch key := key.(type) {
	case *ecdsa.PrivateKey:
		return key, nil
	case ed25519.PrivateKey:
		return key, nil
	}
	if err == nil {
		err = fmt.Errorf("unsupported type %T", key)
	}
	return nil,
		fmt.Errorf("reading the private key %s: %w; use an ECDSA or Ed25519 key without a passphrase, or sign with 'cosign sign --key'", file, err)
}

// Sign signs a pushed artifact in cosign's layout, next to it in the registry. It replaces existing
// signatures.
func (r Reference) Sign(ctx context.Context, key crypto.Signer, options Options) error {
	from, err := repository(r.location)
	if err != nil {
		return err
	}
	one, err := r.signature(key, from.Name())
	if err != nil {
		return fmt.Errorf("signing the artifact %s: %w", r, err)
	}
	_, err = options.push(ctx, signatureTag(from, r.digest), v1.Manifest{}, types.OCIConfigJSON,
		static.NewLayer(one.Payload, payloadMediaType),
		map[string]string{signatureAnnotation: base64.StdEncoding.EncodeToString(one.Signature)})
	if err != nil {
		return fmt.Errorf("pushing the signature of %s: %w", r, err)
	}
	return nil
}

// signature signs the artifact's digest.
func (r Reference) signature(key crypto.Signer, repository string) (signed, error) {
	var of payload
	of.Critical.Identity.Reference, of.Critical.Image.Digest, of.Critical.Type = repository, r.digest, payloadType
	content, err := json.Marshal(of)
	if err != nil {
		return signed{}, err
	}
	message, hash := content, crypto.Hash(0) // Ed25519 signs the message itself
	if _, isECDSA := key.(*ecdsa.PrivateKey); isECDSA {
		sum := sha256.Sum256(content)
		message, hash = sum[:], crypto.SHA256
	}
	signature, err := key.Sign(rand.Reader, message, hash)
	return signed{Payload: content, Signature: signature}, err
}
