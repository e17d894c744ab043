package tofu

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"golang.org/x/mod/sumdb/dirhash"

	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
)

// registry serves one provider, as registries do, and counts its downloads.
type registry struct {
	host, ca, archive string
	unpacked          string // its checksum
	downloads         atomic.Int32
}

func newRegistry(t *testing.T) *registry {
	t.Helper()
	r := &registry{}
	platform, err := filepath.EvalSymlinks(filepath.Join(mirrorForTests(t), registryOfOpenTofu, "gavinbunney", "kubectl", "1.19.0",
		runtime.GOOS+"_"+runtime.GOARCH))
	if err != nil {
		t.Fatal(err)
	}
	var content bytes.Buffer
	packed := zip.NewWriter(&content)
	if err := packed.AddFS(os.DirFS(platform)); err != nil {
		t.Fatal(err)
	}
	if err := packed.Close(); err != nil {
		t.Fatal(err)
	}
	if r.unpacked, err = dirhash.HashDir(platform, "", dirhash.Hash1); err != nil {
		t.Fatal(err)
	}
	r.archive = fmt.Sprintf("%x", sha256.Sum256(content.Bytes()))
	const file = "terraform-provider-kubectl_1.19.0_" + runtime.GOOS + "_" + runtime.GOARCH + ".zip"
	sums := r.archive + "  " + file + "\n"
	key, signature := signed(t, sums)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, got *http.Request) {
		answer := map[string]any{}
		switch base := filepath.Base(got.URL.Path); base {
		case "terraform.json":
			answer["providers.v1"] = "/providers/"
		case "versions":
			answer["versions"] = []any{map[string]any{"version": "1.19.0", "protocols": []string{"5.0"},
				"platforms": []any{map[string]any{"os": runtime.GOOS, "arch": runtime.GOARCH}}}}
		case runtime.GOARCH:
			answer = map[string]any{"os": runtime.GOOS, "arch": runtime.GOARCH, "protocols": []string{"5.0"}, "filename": file,
				"download_url": "/" + file, "shasum": r.archive, "shasums_url": "/sums", "shasums_signature_url": "/signature",
				"signing_keys": map[string]any{"gpg_public_keys": []any{map[string]any{"ascii_armor": key}}}}
		case "sums":
			_, _ = io.WriteString(w, sums)
			return
		case "signature":
			_, _ = w.Write(signature)
			return
		case file:
			r.downloads.Add(1)
			_, _ = w.Write(content.Bytes())
			return
		default:
			http.NotFound(w, got)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	r.host = server.Listener.Addr().String()
	r.ca = filepath.Join(t.TempDir(), "ca.pem")
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(r.ca, authority, 0o600); err != nil {
		t.Fatal(err)
	}
	return r
}

// signed returns the public key of a signature, and the signature.
func signed(t *testing.T, text string) (public string, signature []byte) {
	t.Helper()
	author, err := openpgp.NewEntity("author", "", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	var key, made bytes.Buffer
	armored, err := armor.Encode(&key, openpgp.PublicKeyType, nil)
	if err == nil {
		err = errors.Join(author.Serialize(armored), armored.Close(), openpgp.DetachSign(&made, author, strings.NewReader(text), nil))
	}
	if err != nil {
		t.Fatal(err)
	}
	return key.String(), made.Bytes()
}

// module returns a module whose lock file has a checksum of the provider.
func (r *registry) module(digest, checksum string) Module {
	return Module{Digest: digest, Files: files(map[string]string{
		"main.tf": strings.Replace(object, "gavinbunney", r.host+"/gavinbunney", 1),
		lockFile:  fmt.Sprintf("provider %q {\n  version = \"1.19.0\"\n  hashes  = [%q]\n}\n", r.host+"/gavinbunney/kubectl", checksum),
	})}
}

// engine returns an engine that downloads from the registry.
func (r *registry) engine(t *testing.T) *Engine {
	t.Helper()
	confined, err := sandbox.New(sandbox.Options{Mode: sandbox.Preferred, Read: []string{r.ca}})
	if err != nil {
		t.Fatal(err)
	}
	return newEngine(t, func(o *Options) {
		o.Binary, o.Sandbox = realBinary(t), confined
		o.AllowDirect, o.Environment = true, map[string]string{"SSL_CERT_FILE": r.ca}
	})
}

func TestModulesShareADownload(t *testing.T) {
	r := newRegistry(t)
	e := r.engine(t)
	ended := make(chan error)
	for _, digest := range []string{"a", "b"} {
		go func() { ended <- e.Prepare(t.Context(), r.module(digest, r.unpacked)) }()
	}
	for range 2 {
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
	if got := r.downloads.Load(); got != 1 {
		t.Errorf("%d downloads, want 1", got)
	}
	// What is unpacked cannot be compared with the checksum of an archive.
	prepare(t, e, r.module("c", "zh:"+r.archive))
	if got := r.downloads.Load(); got != 2 {
		t.Errorf("%d downloads for a lock file with the archive's checksum, want one more", got)
	}
	expectTexts(t, e.Prepare(t.Context(), r.module("d", "h1:"+strings.Repeat("A", 43)+"=")), []string{"kubectl", "checksums"})
	var stored []string
	err := filepath.WalkDir(string(e.dir), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && entry.Name() == kubectlBinary {
			stored = append(stored, path)
		}
		return err
	})
	if err != nil || len(stored) != 1 {
		t.Errorf("the provider is stored as %q (%v), want once", stored, err)
	}
	for _, digest := range []string{"a", "b", "c"} {
		f := open(t, e, RunSpec{ID: "r-" + digest, Module: digest, Backend: newBackend(t).at("m"), Variables: []byte(`{"name":"x"}`)})
		if report := plan(t, f, PlanOptions{}); report.Planned.Add != 1 {
			t.Errorf("module %s: the plan is %+v, want one create", digest, report.Planned)
		}
		closeNow(t, f)
	}
}

// TestDamagedDownloadsAreReplaced starts with a folder that has the name of a provider, but not its content.
func TestDamagedDownloadsAreReplaced(t *testing.T) {
	for _, algorithm := range []string{"h1", "zh"} {
		t.Run(algorithm, func(t *testing.T) {
			r := newRegistry(t)
			e := r.engine(t)
			damaged := filepath.Join(e.dir.downloaded(r.unpacked), kubectlBinary)
			if err := writeFile(damaged, []byte("damaged")); err != nil {
				t.Fatal(err)
			}
			prepare(t, e, r.module("a", map[string]string{"h1": r.unpacked, "zh": "zh:" + r.archive}[algorithm]))
			if got, err := dirhash.HashDir(e.dir.downloaded(r.unpacked), "", dirhash.Hash1); err != nil || got != r.unpacked {
				t.Errorf("the provider has the checksum %s, want %s: %v", got, r.unpacked, err)
			}
		})
	}
}

// TestOnlyMissingProvidersAreAwaited has modules wait for another until the provider is kept, and none after that.
func TestOnlyMissingProvidersAreAwaited(t *testing.T) {
	r := &registry{host: "example.org"}
	e := newEngine(t, func(o *Options) { o.AllowDirect = true })
	files := r.module("a", "h1:x").Files
	awaited := make(chan func(), 3)
	await := func() { awaited <- e.awaitDownloads(files) }
	expectAwaited := func(count int) {
		t.Helper()
		for range count {
			select {
			case <-awaited: // and none says that it is done
			case <-time.After(10 * time.Second):
				t.Fatal("a module waits for a provider that is kept")
			}
		}
	}
	done := e.awaitDownloads(files)
	go await()
	go await()
	time.Sleep(100 * time.Millisecond)
	if len(awaited) > 0 {
		t.Fatal("two modules may download the provider")
	}
	if err := os.Mkdir(e.dir.downloaded("h1:x"), 0o700); err != nil {
		t.Fatal(err)
	}
	go await()
	expectAwaited(1)
	done()
	expectAwaited(2)
}
