package source

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/contract"
)

func TestAModuleInAFile(t *testing.T) {
	packed := pack(t)
	_, want := example(t)
	path := filepath.Join(t.TempDir(), "my modules", "acme?.tar.gz")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, packed.Archive, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Fetch(t.Context(), packed.FileReference(path).String(), Options{})
	if err != nil || got.Reference() != want.Reference() {
		t.Errorf("got %v, %v; want %s", got, err, want.Reference())
	}
}

func TestFilesThatAreRefused(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, name)
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	other := []byte("another content")
	large := make([]byte, module.MaxArchiveBytes+1)
	cases := map[string]struct {
		path, digest, want string
	}{
		"a file that has changed": {write("changed", other), allowed, "the content has the digest " + sum(other) + ", which is not that of the reference; find out who changed it"},
		"a file that is no module": {write("text", other), "@" + sum(other),
			"not a complete tar.gz"},
		"a file that is not there": {filepath.Join(dir, "nowhere"), allowed, "no such file"},
		"a folder":                 {dir, allowed, "is not a regular file; use a file from 'kubectl machine module pack', or a folder with --module-dir"},
		"a pipe":                   {pipe, allowed, "is not a regular file"},
		"a large file":             {write("large", large), "@" + sum(large), "it has more than 8388608 bytes"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := Fetch(t.Context(), "file://"+tc.path+tc.digest, Options{}); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v; want %q", err, tc.want)
			}
		})
	}
}

func TestABreachOfTheContractIsReportedWithFileAndLine(t *testing.T) {
	var broken *contract.Error
	files, _ := example(t)
	withoutReadme := fstest.MapFS{}
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || name == "README.md" {
			return err
		}
		content, err := fs.ReadFile(files, name)
		withoutReadme[name] = &fstest.MapFile{Data: content}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Pack(withoutReadme); !errors.As(err, &broken) {
		t.Errorf("got %v; want a module that breaks the contract not to be packed", err)
	}
	s, location := newRegistry(t)
	folder := folderTarball(t, "kubemark/inner") // two folders around it all, of which one is taken off
	reference := location + "/acme@" + upload(t, s, ArtifactType, blob{mediaType: LayerMediaType, content: folder})
	_, err = Fetch(t.Context(), reference, quick())
	if !errors.As(err, &broken) || !strings.Contains(err.Error(), "loading the module from "+reference) {
		t.Errorf("got %v; want the breaches, with the module's place", err)
	}
}

func TestAModuleOnAWebServer(t *testing.T) {
	packed := pack(t)
	_, want := example(t)
	s, options := newWeb(t, packed.Archive)
	s.respondWith(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/latest" {
			http.Redirect(w, r, "/acme.tar.gz", http.StatusFound)
			return true
		}
		return false
	})
	for _, path := range []string{"/acme.tar.gz", "/acme.tar.gz?download=1", "/latest"} {
		got, err := Fetch(t.Context(), s.URL+path+"@"+sum(packed.Archive), options)
		if err != nil || got.Reference() != want.Reference() {
			t.Errorf("%s is %v, %v; want %s", path, got, err, want.Reference())
		}
	}
}

func TestAWebServerThatFails(t *testing.T) {
	archive := pack(t).Archive
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(archive) }))
	defer plain.Close()
	status := func(code int) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(code)
			return true
		}
	}
	cases := map[string]struct {
		respondWith func(http.ResponseWriter, *http.Request) bool
		want        string
		wantTries   int
	}{
		"it is not there":                 {status(404), "the server responds with 404 Not Found; is the URL correct", 1},
		"it is private":                   {status(403), "so use an OCI registry for a private module", 1},
		"there is something else":         {func(w http.ResponseWriter, _ *http.Request) bool { _, _ = w.Write([]byte("x")); return true }, "the content has the digest " + sum([]byte("x")), 1},
		"it is busy for too long":         {status(502), "the server responds with 502 Bad Gateway; tried 4 times", 4},
		"it asks to come again, for long": {status(429), "429 Too Many Requests; tried 4 times", 4},
		"it never ends":                   {func(w http.ResponseWriter, _ *http.Request) bool { return endless(w) }, "it has more than 8388608 bytes", 1},
		"it ends too early":               {func(w http.ResponseWriter, _ *http.Request) bool { return half(w, archive) }, "unexpected EOF; tried 4 times", 4},
		"it hangs up":                     {func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }, "EOF; tried 4 times", 4},
		"it redirects to a URL without TLS": {func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, plain.URL, http.StatusFound)
			return true
		},
			"the server redirects to a URL without TLS", 1},
		"it redirects for ever": {func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, r.URL.Path, http.StatusFound)
			return true
		},
			"the server redirects more than 10 times", 10},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, options := newWeb(t, archive)
			s.respondWith(tc.respondWith)
			_, err := Fetch(t.Context(), s.URL+"/acme.tar.gz?token=hunter2@"+sum(archive), options)
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v; want %q and no secret", err, tc.want)
			}
			if got := s.count(); got != tc.wantTries {
				t.Errorf("it is asked %d times; want %d", got, tc.wantTries)
			}
		})
	}
}

func endless(w http.ResponseWriter) bool {
	for {
		if _, err := w.Write(make([]byte, 1<<20)); err != nil {
			return true
		}
	}
}

func half(w http.ResponseWriter, content []byte) bool {
	w.Header().Set("Content-Length", "1000000")
	_, _ = w.Write(content[:len(content)/2])
	return true
}

func TestAWebServerThatNobodyVouchesFor(t *testing.T) {
	archive := pack(t).Archive
	s, _ := newWeb(t, archive)
	options := quick() // with the CAs of the machine
	logged := record(&options)
	_, err := Fetch(t.Context(), s.URL+"/acme.tar.gz@"+sum(archive), options)
	if err == nil || !strings.Contains(err.Error(), "certificate") || s.count() != 0 || logged.Len() != 0 {
		t.Errorf("got %v after %d requests; want it refused at once", err, s.count())
	}
}

func TestAWebServerThatHangsCostsNoMoreThanTheTimeout(t *testing.T) {
	archive := pack(t).Archive
	s, options := newWeb(t, archive)
	released := make(chan struct{})
	s.respondWith(func(http.ResponseWriter, *http.Request) bool {
		<-released
		return false
	})
	defer close(released)
	options.Timeout = 50 * time.Millisecond
	reference := s.URL + "/acme.tar.gz@" + sum(archive)
	loaded, err := FetchAll(t.Context(), []string{reference, reference, "oci://registry.example.com/acme"}, options)
	if err == nil || loaded != nil || strings.Count(err.Error(), "timed out after 50ms") != 2 || !strings.Contains(err.Error(), "has no digest") {
		t.Errorf("got %v, %v; want an error for each of the three", loaded, err)
	}
}

func TestACallerThatEndsIsNotKept(t *testing.T) {
	archive := pack(t).Archive
	s, options := newWeb(t, archive)
	ctx, cancel := context.WithCancel(t.Context())
	s.respondWith(func(w http.ResponseWriter, _ *http.Request) bool {
		cancel()
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	options.Backoff.Duration = time.Hour
	if _, err := Fetch(ctx, s.URL+"/acme.tar.gz@"+sum(archive), options); err == nil || s.count() != 1 {
		t.Errorf("got %v after %d requests", err, s.count())
	}
}

func TestFetchAllKeepsTheOrder(t *testing.T) {
	packed := pack(t)
	s, options := newWeb(t, packed.Archive)
	registry, location := newRegistry(t)
	_ = registry
	pushed, err := packed.Push(t.Context(), location+"/acme:v1", quick())
	if err != nil {
		t.Fatal(err)
	}
	got, err := FetchAll(t.Context(), []string{pushed.String(), s.URL + "/acme.tar.gz@" + sum(packed.Archive)}, options)
	if err != nil || len(got) != 2 || got[0] == nil || got[1] == nil {
		t.Errorf("got %v, %v", got, err)
	}
	if none, err := FetchAll(t.Context(), nil, options); err != nil || len(none) != 0 {
		t.Errorf("got %v, %v of nothing", none, err)
	}
}

func TestErrorsOfNetworkShowNoURL(t *testing.T) {
	err := withoutURL(&url.Error{Op: "Get", URL: "https://example.com/?token=hunter2", Err: errors.New("connection refused")})
	if err.Error() != "connection refused" {
		t.Errorf("got %v", err)
	}
}
