package tofu

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
)

// Module is a root module.
type Module struct {
	// Digest names the content, for example "sha256:0a1b...". Two modules with one digest are taken for the same.
	Digest string
	// Files are the module's. Folders named tests and examples and what is no regular file are left out. The files of a folder
	// that a [engine.Search] names are added to the module by runs that ask for it; they use the module's providers only.
	Files fs.FS
	// Environment is added to the engine's while the module is initialised, for example proxies for what is downloaded.
	Environment map[string]string
	// Sensitive are strings that must not show in what is reported of that.
	Sensitive []string
}

// The parts of a module's folder.
const (
	moduleDir   = "module" // what a run links to; beside it are the folders of searches, whose files a run may link to as well
	dataDir     = ".terraform"
	backendFile = "backend.tf.json"
	// instanceCheckFile is what a run has in place of the module's files that only reads the instance.
	instanceCheckFile = "instance-check.tf"
)

// backendBlock has the state kept through the http backend. Its settings come by environment, so they are no part of what is
// initialised, and one initialised module serves every state.
const backendBlock = `{"terraform":{"backend":{"http":{}}}}` + "\n"

var digestPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9:._-]{0,199}$`)

// moduleKey names the folder of a module that is initialised by this engine with these providers. Another engine initialises
// anew, since what it would find may not fit.
func (e *Engine) moduleKey(digest string) (string, error) {
	if !digestPattern.MatchString(digest) {
		return "", fmt.Errorf("the module digest %q can't name a folder; use letters, digits and :._-", digest)
	}
	mirror, err := e.mirror()
	if err != nil {
		return "", err
	}
	binary := e.options.Binary
	with := sha256.Sum256(fmt.Appendf(nil, "%s %s %s %t %t", binary.Name, binary.Version, mirror, e.options.AllowDirect, e.options.VerifyEachRun))
	return strings.ReplaceAll(digest, ":", "-") + "-" + hex.EncodeToString(with[:4]), nil
}

func (e *Engine) prepared(key string) (string, bool) {
	dir := filepath.Join(e.dir.modules(), key)
	info, err := os.Stat(dir)
	return dir, err == nil && info.IsDir() && hasProviders(dir)
}

// hasProviders reports whether the providers that a module was initialised with are still where they were. They are links into the
// mirror, which may have been replaced since.
func hasProviders(dir string) bool {
	// host, namespace, type, version, platform
	platforms, err := filepath.Glob(filepath.Join(dir, moduleDir, dataDir, "providers", "*", "*", "*", "*", "*"))
	if err != nil {
		return false
	}
	return !slices.ContainsFunc(platforms, func(platform string) bool {
		_, err := os.Stat(platform)
		return err != nil
	})
}

// Prepare writes and initialises the module once; from then on it returns at once, also after a restart. Callers that come while
// it works wait for it and get the same result. A failure is not remembered.
func (e *Engine) Prepare(ctx context.Context, m Module) error {
	key, err := e.moduleKey(m.Digest)
	if err == nil {
		err = reserved.Check(m.Environment)
	}
	if err != nil {
		return &failure.Error{Op: failure.OpInit, Class: failure.Unknown, Err: err}
	}
	if _, done := e.prepared(key); done {
		return nil
	}
	if err := e.options.Sandbox.Check(); err != nil {
		return &failure.Error{Op: failure.OpInit, Class: failure.Unknown, Err: err}
	}
	result := e.inits.DoChan(key, func() (any, error) {
		if _, done := e.prepared(key); done {
			return nil, nil
		}
		// It goes on when the caller that began it gives up: others wait for it.
		return nil, e.initialise(context.WithoutCancel(ctx), key, m)
	})
	select {
	case r := <-result:
		return r.Err
	case <-ctx.Done():
		return &failure.Error{Op: failure.OpInit, Class: failure.Interrupted, Err: context.Cause(ctx)}
	}
}

// initialise makes the module's folder aside and moves it to its place when it is ready, so that a folder in place is complete.
func (e *Engine) initialise(ctx context.Context, key string, m Module) error {
	slot, err := e.acquire(ctx)
	if err != nil {
		return &failure.Error{Op: failure.OpInit, Class: failure.Interrupted, Err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, e.options.InitTimeout)
	defer cancel()
	staging, err := os.MkdirTemp(e.dir.modules(), stagingPrefix)
	if err == nil {
		err = e.initialiseIn(ctx, slot, staging, m)
	}
	if target := filepath.Join(e.dir.modules(), key); err == nil {
		if err = os.RemoveAll(target); err == nil { // what has lost its providers
			err = os.Rename(staging, target)
		}
	}
	if err != nil {
		err = errors.Join(e.asInitError(err), os.RemoveAll(staging))
	}
	return errors.Join(err, e.release(slot))
}

func (e *Engine) asInitError(err error) error {
	var failed *failure.Error
	if errors.As(err, &failed) {
		return err
	}
	return &failure.Error{Op: failure.OpInit, Class: failure.Unknown, Err: e.dir.redactor(nil).Error(err)}
}

func (e *Engine) initialiseIn(ctx context.Context, s *slot, staging string, m Module) error {
	committed, err := writeModule(staging, m.Files)
	if err != nil {
		return &failure.Error{Op: failure.OpInit, Class: failure.Unknown, Err: err}
	}
	dir := filepath.Join(staging, moduleDir)
	lock := filepath.Join(dir, lockFile)
	committed = committed.forEngine(e.options.Binary.Name)
	if len(committed) > 0 {
		if err := os.WriteFile(lock, committed.encode(), 0o600); err != nil {
			return fmt.Errorf("writing the module's lock file: %w", err)
		}
	}
	if err := e.runInit(ctx, s, dir, m); err != nil {
		return err
	}
	content, err := os.ReadFile(lock)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it has no providers
	}
	if err != nil {
		return fmt.Errorf("reading the module's lock file: %w", err)
	}
	selected, err := parseLockFile(content)
	if err != nil {
		return err
	}
	if err := checkSelected(committed, selected); err != nil {
		return &failure.Error{Op: failure.OpInit, Class: failure.Unknown, Err: err}
	}
	if e.options.VerifyEachRun {
		return nil
	}
	if err := os.WriteFile(lock, selected.withoutHashes().encode(), 0o600); err != nil {
		return fmt.Errorf("writing the module's lock file: %w", err)
	}
	return nil
}

// runInit runs `init` in dir. It asks the backend for a state, so it is given one that has none.
func (e *Engine) runInit(ctx context.Context, s *slot, dir string, m Module) error {
	address, stop, err := EmptyBackend()
	if err != nil {
		return err
	}
	defer stop()
	environment := e.environment(dir, s, m.Environment, Backend{Address: address})
	if err := s.use(ctx, dir, e.confined(environment, dir, dir)); err != nil {
		return err
	}
	_, err = s.run(ctx, operation{
		op:     failure.OpInit,
		dir:    dir,
		redact: e.dir.redactor(m.Sensitive),
		call:   func(ctx context.Context, out *stream) error { return s.terraform.InitJSON(ctx, out) },
	})
	return err
}

// EmptyBackend serves an http backend without a state on loopback. It keeps nothing, so it is for what only reads.
func EmptyBackend() (address string, stop func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("serving an empty state: %w", err)
	}
	server := &http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: 10 * time.Second}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // it ends when it is closed
	}()
	stop = func() {
		_ = server.Close() // nothing can be done about it
		<-served
	}
	return "http://" + listener.Addr().String() + "/", stop, nil
}

// leftOut are the folders of a module that no run needs.
var leftOut = []string{"tests", "examples"}

// writeModule writes the module's files and the backend block into dir, and returns what its lock file selects.
func writeModule(dir string, files fs.FS) (selections, error) {
	committed := selections{}
	for _, part := range append([]engine.Search{moduleDir}, engine.Searches...) {
		if err := os.Mkdir(filepath.Join(dir, string(part)), 0o700); err != nil {
			return nil, fmt.Errorf("making the module's folder: %w", err)
		}
	}
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if slices.Contains(leftOut, name) || name != "." && strings.HasPrefix(entry.Name(), ".") {
				return fs.SkipDir
			}
			return nil
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		switch name {
		case lockFile:
			committed, err = parseLockFile(content)
			return err
		case backendFile:
			return fmt.Errorf("the module has a file %s, which is the operator's; remove it", backendFile)
		}
		return writeFile(filepath.Join(dir, filepath.FromSlash(targetOf(name))), content)
	})
	if err != nil {
		return nil, fmt.Errorf("writing the module: %w", err)
	}
	return committed, writeFile(filepath.Join(dir, moduleDir, backendFile), []byte(backendBlock))
}

// targetOf returns where a file of the module goes: files of searches stay aside.
func targetOf(name string) string {
	if slices.Contains(engine.Searches, engine.Search(path.Dir(name))) {
		return name
	}
	return path.Join(moduleDir, name)
}

func writeFile(name string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	return os.WriteFile(name, content, 0o600)
}
