package source

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// cosign's names for the parts of a signature: an artifact next to the signed one, with a layer for
// each signature. The layer's content is the payload.
const (
	payloadMediaType    = "application/vnd.dev.cosign.simplesigning.v1+json"
	payloadType         = "cosign container image signature"
	signatureAnnotation = "dev.cosignproject.cosign/signature"

	maxSignatures   = 32
	maxPayloadBytes = 64 << 10
	maxPEMBytes     = 64 << 10
)

// payload is what a signature signs.
type payload struct {
	Critical struct {
		Identity struct {
			Reference string `json:"docker-reference"`
		} `json:"identity"`
		Image struct {
			Digest string `json:"docker-manifest-digest"`
		} `json:"image"`
		Type string `json:"type"`
	} `json:"critical"`
	Optional map[string]any `json:"optional"`
}

// signed is a payload with its signature, also the format of the cache.
type signed struct {
	Payload   []byte `json:"payload"`
	Signature []byte `json:"signature"`
}

// ReadPublicKey reads an ECDSA or Ed25519 key from a PEM file, such as cosign.pub from 'cosign
// generate-key-pair'.
func ReadPublicKey(file string) (crypto.PublicKey, error) {
	block, err := readPEM(file)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("reading the public key %s: %w; use a file such as cosign.pub", file, err)
	}
	switch key.(type) {
	case *ecdsa.PublicKey, ed25519.PublicKey:
		return key, nil
	}
	return nil, fmt.Errorf("the public key %s is a %T; use an ECDSA or Ed25519 key", file, key)
}

func readPEM(file string) (*pem.Block, error) {
	content, err := readSmall(file, maxPEMBytes)
	if err != nil {
		return nil, fmt.Errorf("reading the key %s: %w", file, err)
	}
	block, _ := pem.Decode(content)
	if block == nil {
		return nil, fmt.Errorf("the key %s is not in PEM format; use a file that starts with -----BEGIN", file)
	}
	return block, nil
}

func readSmall(name string, limit int64) (content []byte, err error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	content, err = io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = fmt.Errorf("it has more than %d bytes", limit)
	}
	return content, err
}

// signatureTag returns where cosign stores the signatures of an artifact.
func signatureTag(from name.Repository, digest string) name.Tag {
	return from.Tag(strings.Replace(digest, ":", "-", 1) + ".sig")
}

// checkSigned checks that one of the keys has signed the artifact with a digest. A cached signature
// is valid as long as its key is among them.
func (f *fetcher) checkSigned(ctx context.Context, from name.Repository, digest string) error {
	if kept, ok := f.cache.signature(digest); ok && f.verifies(kept, digest) == nil {
		return nil
	}
	var found []signed
	err := f.retry(ctx, func(ctx context.Context) (err error) {
		found, err = f.signatures(ctx, from, digest)
		return err
	})
	if err != nil {
		return err
	}
	var failed []error
	for _, one := range found {
		err := f.verifies(one, digest)
		if err == nil {
			f.cache.putSignature(digest, one)
			return nil
		}
		failed = append(failed, err)
	}
	return fmt.Errorf("no key of --module-source-key has signed %s@%s: %w; sign it with 'kubectl machine module push --sign' or 'cosign sign --key', "+
		"or add the key that it is signed with", from, digest, errors.Join(failed...))
}

// signatures returns the artifact's signatures in the registry. Having none is an error.
func (f *fetcher) signatures(ctx context.Context, from name.Repository, digest string) ([]signed, error) {
	tag := signatureTag(from, digest)
	got, err := remote.Get(tag, f.registryOptions(ctx)...)
	if missing, ok := errors.AsType[*transport.Error](err); ok && missing.StatusCode == http.StatusNotFound {
		return nil,
			fmt.Errorf("there is no signature at %s; sign the artifact with 'kubectl machine module push --sign' or 'cosign sign --key', "+
				"or remove --module-source-key", tag)
	}
	if err != nil {
		return nil, registryError(from.RegistryStr(), err)
	}
	manifest, err := v1.ParseManifest(bytes.NewReader(got.Manifest))
	if err != nil {
		return nil, fmt.Errorf("reading the signatures at %s: %w", tag, err)
	}
	var found []signed
	for _, layer := range manifest.Layers {
		if string(layer.MediaType) != payloadMediaType || layer.Size > maxPayloadBytes || len(found) == maxSignatures {
			continue
		}
		signature, err := base64.StdEncoding.DecodeString(layer.Annotations[signatureAnnotation])
		if err != nil {
			return nil, fmt.Errorf("a signature at %s is not base64; sign the artifact again", tag)
		}
		content, err := f.layer(ctx, from.Digest(layer.Digest.String()))
		if err != nil {
			return nil, err
		}
		found = append(found, signed{Payload: content, Signature: signature})
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("the artifact at %s has no signature of the type %s; sign the artifact again", tag,
			payloadMediaType)
	}
	return found, nil
}

// verifies returns an error unless a signature shows that one of the keys has signed the artifact
// with a digest.
func (f *fetcher) verifies(one signed, digest string) error {
	genuine := false
	for _, key := range f.SignedBy {
		genuine = genuine || verify(key, one)
	}
	if !genuine {
		return errors.New("a signature was made with another key")
	}
	var of payload
	if err := json.Unmarshal(one.Payload, &of); err != nil {
		return fmt.Errorf("cannot parse the payload of a signature: %w", err)
	}
	if of.Critical.Type != payloadType || of.Critical.Image.Digest != digest {
		return fmt.Errorf("a signature is for %s", of.Critical.Image.Digest)
	}
	return nil
}

func verify(key crypto.PublicKey, one signed) bool {
	switch key := key.(type) {
	case *ecdsa.PublicKey:
		sum := sha256.Sum256(one.Payload)
		return ecdsa.VerifyASN1(key, sum[:], one.Signature)
	case ed25519.PublicKey:
		return ed25519.Verify(key, one.Payload, one.Signature)
	}
	return false
}
