package source

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// signingKey is a key and its files in PEM.
type signingKey struct {
	crypto.Signer
	private, public string
}

func newKey(t *testing.T, kind string) signingKey {
	t.Helper()
	var key crypto.Signer
	var err error
	switch kind {
	case "ECDSA":
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "Ed25519":
		_, key, err = ed25519.GenerateKey(rand.Reader)
	default:
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	}
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return signingKey{Signer: key, private: writePEM(t, "PRIVATE KEY", private), public: writePEM(t, "PUBLIC KEY", public)}
}

func writePEM(t *testing.T, kind string, content []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// signedBy returns options that ask for a signature of one of the keys.
func signedBy(t *testing.T, keys ...signingKey) Options {
	t.Helper()
	options := quick()
	for _, key := range keys {
		public, err := ReadPublicKey(key.public)
		if err != nil {
			t.Fatal(err)
		}
		options.SignedBy = append(options.SignedBy, public)
	}
	return options
}

// pushSigned pushes the example, and signs it.
func pushSigned(t *testing.T, location string, key signingKey) Reference {
	t.Helper()
	pushed, err := pack(t).Push(t.Context(), location+"/acme:v1", quick())
	if err != nil {
		t.Fatal(err)
	}
	private, err := ReadPrivateKey(key.private)
	if err != nil {
		t.Fatal(err)
	}
	if err := pushed.Sign(t.Context(), private, quick()); err != nil {
		t.Fatal(err)
	}
	return pushed
}

func TestASignedArtifactIsFetched(t *testing.T) {
	for _, kind := range []string{"ECDSA", "Ed25519"} {
		t.Run(kind, func(t *testing.T) {
			registry, location := newRegistry(t)
			key := newKey(t, kind)
			pushed := pushSigned(t, location, key)
			options := signedBy(t, newKey(t, "ECDSA"), key)
			options.CacheDir = t.TempDir()
			if _, err := Fetch(t.Context(), pushed.String(), options); err != nil {
				t.Fatal(err)
			}
			registry.Close()
			if _, err := Fetch(t.Context(), pushed.String(), options); err != nil {
				t.Errorf("after a restart, without the registry: %v", err)
			}
			other := signedBy(t, newKey(t, kind))
			other.CacheDir = options.CacheDir
			if _, err := Fetch(t.Context(), pushed.String(), other); err == nil {
				t.Error("what is kept was taken for signed by another key")
			}
		})
	}
}

func TestASignatureThatTheLayoutOfCosignHas(t *testing.T) {
	registry, location := newRegistry(t)
	key := newKey(t, "ECDSA")
	pushed, err := pack(t).Push(t.Context(), location+"/acme:v1", quick())
	if err != nil {
		t.Fatal(err)
	}
	// As cosign writes it, with fields that do not matter here.
	content := []byte(`{"critical":{"identity":{"docker-reference":"registry.example.com/acme"},"image":{"docker-manifest-digest":"` + pushed.digest +
		`"},"type":"cosign container image signature"},"optional":{"creator":"somebody"}}`)
	uploadSignature(t, registry, pushed.digest, content, key)
	if _, err := Fetch(t.Context(), pushed.String(), signedBy(t, key)); err != nil {
		t.Error(err)
	}
}

// uploadSignature puts a signature beside an artifact by plain requests.
func uploadSignature(t *testing.T, s *server, digest string, content []byte, key signingKey) {
	t.Helper()
	hash := sha256.Sum256(content)
	signature, err := key.Sign(rand.Reader, hash[:], crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	config := []byte(`{"architecture":"","os":"","rootfs":{"type":"layers","diff_ids":[]},"config":{}}`)
	for _, one := range [][]byte{config, content} {
		put(t, s.URL+"/v2/acme/blobs/uploads/1?digest="+sum(one), "application/octet-stream", one)
	}
	layer := blob{mediaType: payloadMediaType, content: content}.descriptor()
	layer["annotations"] = map[string]string{signatureAnnotation: base64.StdEncoding.EncodeToString(signature)}
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": blob{mediaType: "application/vnd.oci.image.config.v1+json", content: config}.descriptor(), "layers": []any{layer},
	})
	if err != nil {
		t.Fatal(err)
	}
	put(t, s.URL+"/v2/acme/manifests/"+strings.Replace(digest, ":", "-", 1)+".sig", "application/vnd.oci.image.manifest.v1+json", manifest)
}

func TestAnArtifactThatIsNotSignedIsRefused(t *testing.T) {
	key := newKey(t, "ECDSA")
	const other = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
	payloadOf := func(kind, digest string) []byte {
		return []byte(`{"critical":{"identity":{"docker-reference":""},"image":{"docker-manifest-digest":"` + digest + `"},"type":"` + kind + `"}}`)
	}
	for name, tc := range map[string]struct {
		sign func(t *testing.T, s *server, digest string)
		want string
	}{
		"nobody has signed it": {func(*testing.T, *server, string) {}, "there is no signature at"},
		"another key has": {func(t *testing.T, s *server, digest string) {
			uploadSignature(t, s, digest, payloadOf(payloadType, digest), newKey(t, "ECDSA"))
		}, "a signature was made with another key"},
		"it is of another artifact": {func(t *testing.T, s *server, digest string) {
			uploadSignature(t, s, digest, payloadOf(payloadType, other), key)
		}, "a signature is for " + other},
		"it is of something else": {func(t *testing.T, s *server, digest string) {
			uploadSignature(t, s, digest, payloadOf("note", digest), key)
		}, "no key of --module-source-key has signed"},
		"it is of no JSON":              {func(t *testing.T, s *server, digest string) { uploadSignature(t, s, digest, []byte("signed"), key) }, "cannot parse the payload"},
		"its artifact has no signature": {func(t *testing.T, s *server, digest string) { putManifest(t, s, digest) }, "has no signature of the type"},
	} {
		t.Run(name, func(t *testing.T) {
			registry, location := newRegistry(t)
			pushed, err := pack(t).Push(t.Context(), location+"/acme:v1", quick())
			if err != nil {
				t.Fatal(err)
			}
			tc.sign(t, registry, pushed.digest)
			_, err = Fetch(t.Context(), pushed.String(), signedBy(t, key))
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "sign") {
				t.Errorf("got %v, want %q and how to sign it", err, tc.want)
			}
			if _, err := Fetch(t.Context(), pushed.String(), quick()); err != nil {
				t.Errorf("where no signature is asked for: %v", err)
			}
		})
	}
}

// putManifest puts an artifact where the signature of another is looked for.
func putManifest(t *testing.T, s *server, digest string) {
	t.Helper()
	content := blob{mediaType: "text/plain", content: []byte("x")}
	put(t, s.URL+"/v2/acme/blobs/uploads/1?digest="+sum(content.content), "application/octet-stream", content.content)
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": content.descriptor(), "layers": []any{content.descriptor()},
	})
	if err != nil {
		t.Fatal(err)
	}
	put(t, s.URL+"/v2/acme/manifests/"+strings.Replace(digest, ":", "-", 1)+".sig", "application/vnd.oci.image.manifest.v1+json", manifest)
}

func TestASignatureIsAskedForAgainWhenTheRegistryFails(t *testing.T) {
	registry, location := newRegistry(t)
	key := newKey(t, "ECDSA")
	pushed := pushSigned(t, location, key)
	failed := false
	registry.respondWith(func(w http.ResponseWriter, r *http.Request) bool {
		if failed || !strings.HasSuffix(r.URL.Path, ".sig") {
			return false
		}
		failed = true
		w.WriteHeader(http.StatusBadGateway)
		return true
	})
	if _, err := Fetch(t.Context(), pushed.String(), signedBy(t, key)); err != nil || !failed {
		t.Errorf("%v, want the second try to succeed", err)
	}
}

func TestKeysThatCannotBeUsed(t *testing.T) {
	noPEM := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(noPEM, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	rsaKey := newKey(t, "RSA")
	for name, tc := range map[string]struct{ file, public, private string }{
		"no file":     {filepath.Join(t.TempDir(), "none"), "no such file", "no such file"},
		"no PEM":      {noPEM, "is not in PEM", "is not in PEM"},
		"not a key":   {writePEM(t, "PUBLIC KEY", []byte("x")), "use a file such as cosign.pub", "without a passphrase"},
		"RSA":         {rsaKey.public, "use an ECDSA or Ed25519 key", "use an ECDSA or Ed25519 key"},
		"private RSA": {rsaKey.private, "use a file such as cosign.pub", "unsupported type *rsa.PrivateKey; use an ECDSA or Ed25519 key"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := ReadPublicKey(tc.file); err == nil || !strings.Contains(err.Error(), tc.public) {
				t.Errorf("as a public key: %v, want %q", err, tc.public)
			}
			if _, err := ReadPrivateKey(tc.file); err == nil || !strings.Contains(err.Error(), tc.private) || strings.Contains(err.Error(), "secret") {
				t.Errorf("as a private key: %v, want %q", err, tc.private)
			}
		})
	}
}
