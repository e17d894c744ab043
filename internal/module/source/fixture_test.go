package source

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-containerregistry/pkg/registry"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/modules"
)

// example returns the files of a module, and the module.
func example(t *testing.T) (fs.FS, *module.Module) {
	t.Helper()
	files, err := fs.Sub(modules.FS, "kubemark")
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := load.Module(files)
	if err != nil {
		t.Fatal(err)
	}
	return files, loaded
}

func pack(t *testing.T) Packed {
	t.Helper()
	files, _ := example(t)
	packed, err := Pack(files)
	if err != nil {
		t.Fatal(err)
	}
	return packed
}

// quick returns options that do not wait between tries.
func quick() Options {
	return Options{Backoff: wait.Backoff{Duration: time.Millisecond, Steps: 4}}
}

// server returns requests by handlers that come before the one of its own, and counts requests.
type server struct {
	*httptest.Server
	mu       sync.Mutex
	requests []string
	before   func(http.ResponseWriter, *http.Request) bool
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request, next http.Handler) {
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.Path)
	before := s.before
	s.mu.Unlock()
	if before == nil || !before(w, r) {
		next.ServeHTTP(w, r)
	}
}

// respondWith has a function handle requests first. The function reports whether it did.
func (s *server) respondWith(before func(http.ResponseWriter, *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = before
}

func (s *server) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests)
}

// newRegistry starts a registry. Its reference is the returned server's URL, with oci:// before the host.
func newRegistry(t *testing.T) (*server, string) {
	t.Helper()
	s := &server{}
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.ServeHTTP(w, r, inner) }))
	t.Cleanup(s.Close)
	return s, "oci://" + strings.TrimPrefix(s.URL, "http://")
}

// newWeb starts a web server with TLS that has one file.
func newWeb(t *testing.T, content []byte) (*server, Options) {
	t.Helper()
	s := &server{}
	inner := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/acme.tar.gz" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(content)
	})
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.ServeHTTP(w, r, inner) }))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	options := quick()
	options.Transport = s.Client().Transport
	return s, options
}

// record keeps what is logged.
func record(options *Options) *bytes.Buffer {
	var logged bytes.Buffer
	options.Logger = funcr.New(func(prefix, arguments string) { fmt.Fprintln(&logged, prefix, arguments) }, funcr.Options{})
	return &logged
}

func sum(content []byte) string {
	hash := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(hash[:])
}

// blob is what an artifact of another tool's making has.
type blob struct {
	mediaType string
	content   []byte
	// size is what the manifest says; zero is the truth.
	size int
	// absent blobs are not uploaded.
	absent bool
}

func (b blob) descriptor() map[string]any {
	size := b.size
	if size == 0 {
		size = len(b.content)
	}
	return map[string]any{"mediaType": b.mediaType, "digest": sum(b.content), "size": size}
}

// upload puts an artifact into the registry by plain requests, and returns the manifest's digest.
func upload(t *testing.T, s *server, artifactType string, layers ...blob) string {
	t.Helper()
	config := blob{mediaType: "application/vnd.oci.empty.v1+json", content: []byte("{}")}
	described := []any{}
	for _, one := range layers {
		described = append(described, one.descriptor())
	}
	for _, one := range append([]blob{config}, layers...) {
		if !one.absent {
			put(t, s.URL+"/v2/acme/blobs/uploads/1?digest="+sum(one.content), "application/octet-stream", one.content)
		}
	}
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "artifactType": artifactType,
		"config": config.descriptor(), "layers": described,
	})
	if err != nil {
		t.Fatal(err)
	}
	put(t, s.URL+"/v2/acme/manifests/v1", "application/vnd.oci.image.manifest.v1+json", manifest)
	return sum(manifest)
}

func put(t *testing.T, url, mediaType string, content []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, url, bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", mediaType)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusCreated {
		t.Fatalf("PUT %s returns %s", url, response.Status)
	}
}

// folderTarball returns the module in a folder, as tools pack one that are given a folder.
func folderTarball(t *testing.T, folder string) []byte {
	t.Helper()
	files, _ := example(t)
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	archive := tar.NewWriter(compressed)
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return archive.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: folder + "/" + name + "/", Mode: 0o755})
		}
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: folder + "/" + name, Size: int64(len(content)), Mode: 0o600}); err != nil {
			return err
		}
		_, err = archive.Write(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := compressed.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
