package tofu

import (
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/go-logr/logr/testr"

	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
	"github.com/machine-iac/machine-iac-operator/test/shortdir"
)

// realBinary returns the engine that integration tests drive: $TOFU, or what `make tools` built.
func realBinary(t testing.TB) Binary {
	t.Helper()
	path := os.Getenv("TOFU")
	if path == "" {
		path = filepath.Join("..", "..", "..", "bin", "tofu")
	}
	binary, err := Find(t.Context(), FindOptions{Path: path})
	if err != nil {
		t.Fatalf("%v; run 'make tools', or set TOFU", err)
	}
	return binary
}

// preferred returns the sandbox that the manager has by default.
func preferred(t testing.TB) *sandbox.Sandbox {
	t.Helper()
	confined, err := sandbox.New(sandbox.Options{Mode: sandbox.Preferred})
	if err != nil {
		t.Fatal(err)
	}
	return confined
}

// newEngine returns an engine with the real CLI. The mods change its options.
func newEngine(t testing.TB, mods ...func(*Options)) *Engine {
	t.Helper()
	options := Options{WorkDir: shortdir.New(t), WaitDelay: 30 * time.Second, Slots: 2}
	if t, ok := t.(*testing.T); ok {
		options.Logger = testr.New(t)
	}
	for _, mod := range mods {
		mod(&options)
	}
	if options.Binary.Path == "" {
		options.Binary, options.Sandbox = realBinary(t), preferred(t)
	}
	e, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := e.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return e
}

// moduleOf returns a module of one file.
func moduleOf(digest, main string) Module {
	return Module{Digest: digest, Files: files(map[string]string{"main.tf": main})}
}

func files(content map[string]string) fs.FS {
	m := fstest.MapFS{}
	for name, text := range content {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

func prepare(t testing.TB, e *Engine, m Module) {
	t.Helper()
	if err := e.Prepare(t.Context(), m); err != nil {
		t.Fatal(err)
	}
}

// open opens a run that is closed with the test.
func open(t testing.TB, e *Engine, r RunSpec) *Workspace {
	t.Helper()
	if r.Variables == nil {
		r.Variables = []byte("{}")
	}
	f, err := e.Open(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func variables(t testing.TB, values map[string]any) []byte {
	t.Helper()
	content, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// stateBackend is a tiny http backend that keeps one state for each path.
type stateBackend struct {
	*httptest.Server
	mu     sync.Mutex
	states map[string][]byte
	locks  map[string]bool
	broken bool
}

const backendPassword = "backend-password"

func newBackend(t testing.TB) *stateBackend {
	b := &stateBackend{states: map[string][]byte{}, locks: map[string]bool{}}
	b.Server = httptest.NewServer(b)
	t.Cleanup(b.Close)
	return b
}

// at returns the engine's settings for the state of a name.
func (b *stateBackend) at(name string) Backend {
	address := b.URL + "/" + name
	return Backend{Address: address, LockAddress: address, UnlockAddress: address, Username: "run", Password: backendPassword}
}

func (b *stateBackend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, password, _ := r.BasicAuth(); password != backendPassword {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if b.broken {
		w.WriteHeader(http.StatusBadRequest) // engines try again after a 5xx
		return
	}
	name := strings.TrimPrefix(r.URL.Path, "/")
	switch r.Method {
	case http.MethodGet:
		state, found := b.states[name]
		if !found {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = w.Write(state)
	case http.MethodPost:
		b.states[name], _ = io.ReadAll(r.Body)
	case "LOCK":
		if b.locks[name] {
			w.WriteHeader(http.StatusLocked)
			_, _ = w.Write([]byte(`{"ID":"of-somebody-else"}`))
			return
		}
		b.locks[name] = true
	case "UNLOCK":
		b.locks[name] = false
	}
}

func (b *stateBackend) set(change func(*stateBackend)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(b)
}

// state returns the addresses of the resources in a state, and its outputs.
func (b *stateBackend) state(t testing.TB, name string) (resources []string, outputs map[string]any) {
	t.Helper()
	b.mu.Lock()
	content := b.states[name]
	b.mu.Unlock()
	if content == nil {
		return nil, nil
	}
	return readState(t, content)
}

func readState(t testing.TB, content []byte) (resources []string, outputs map[string]any) {
	t.Helper()
	var state struct {
		Outputs   map[string]struct{ Value any }
		Resources []struct{ Type, Name string }
	}
	if err := json.Unmarshal(content, &state); err != nil {
		t.Fatalf("reading the state: %v", err)
	}
	for _, resource := range state.Resources {
		resources = append(resources, resource.Type+"."+resource.Name)
	}
	outputs = map[string]any{}
	for name, output := range state.Outputs {
		outputs[name] = output.Value
	}
	return resources, outputs
}

func (b *stateBackend) locked(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.locks[name]
}

// withEnvironment adds variables to a run's.
func withEnvironment(r RunSpec, add map[string]string) RunSpec {
	r.Environment = maps.Clone(add)
	return r
}

// tree lists the files below dir, for messages and searches.
func tree(t testing.TB, dir string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// eventually waits for done.
func eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	for range 1000 {
		if done() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s does not come true", what)
}

// safeText is a buffer that may be read while it is written.
type safeText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *safeText) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *safeText) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}
