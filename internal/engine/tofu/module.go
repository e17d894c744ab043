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
	// Digest identifies the content, for example "sha256:0a1b...". Modules with the same digest are
	// considered equal.
	Digest string
	// Files are the module's files. Folders named tests and examples, and anything but regular files,
	// are ignored. Runs can request the files of a folder that a [engine.Search] names; these use only
	// the module's providers.
	Files fs.FS
	// Environment is added to the engine's environment during initialization, for example proxies for
	// downloads.
	Environment map[string]string
	// Sensitive are strings to redact from the reports about that.
	Sensitive []string
}

// The parts of a module's folder.
const (
	moduleDir   = "module" // what a run links to; beside it are the folders of searches, whose files a run may link to as well
	dataDir     = ".terraform"
	backendFile = "backend.tf.json"
	// providersFile, beside the module's folder, lists the providers that the module was initialized
	// with.
	providersFile = "providers"
	// bareFile replaces the module's HCL in runs that need only the providers.
	bareFile = "machine-iac-providers.tf"
)

// backendBlock selects the http backend. Its settings come from the environment, so one initialized
// module serves every state.
const backendBlock = `{"terraform":{"backend":{"http":{}}}}` + "\n"

var digestPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9:._-]{0,199}$`)

// moduleKey returns the folder name of a module initialized by this engine with these providers.
// Another engine initializes it again, since the result may not be compatible.
func (e *Engine) moduleKey(digest string) (string, error) {
	if !digestPattern.MatchString(digest) {
		return "", fmt.Errorf("module digest %q cannot be used as a folder name; use letters, digits and :._-", digest)
	}
	mirror, err := e.mirror()
	if err != nil {
		return "", err
	}
	binary := e.options.Binary
	_, manifest := e.mirrored.Manifest()
	with := sha256.Sum256(fmt.Appendf(nil, "%s %s %s %t %t %x",
		binary.Name, binary.Version, mirror, e.options.AllowDirect, e.options.VerifyEachRun, sha256.Sum256(manifest)))
	return strings.ReplaceAll(digest, ":", "-") + "-" + hex.EncodeToString(with[:4]), nil
}

// prepared returns the folder of a module, the list of its providers, and whether it is initialized
// with the current ones. Providers are links into the mirror, which may have changed. The module is
// then initialized again, which verifies them.
func (e *Engine) prepared(key string) (dir, providers string, ok bool) {
	dir = filepath.Join(e.dir.modules(), key)
	initialised, err := os.ReadFile(filepath.Join(dir, providersFile))
	if err != nil {
		return dir, "", false
	}
	providers, err = e.describeProviders(dir)
	return dir, providers, err == nil && providers == string(initialised)
}

// Prepare writes and initializes the module once. Later calls return immediately, also after a
// restart. Concurrent calls share one initialization.
//
// Prepare remembers that the mirror lacks a provider until the mirror changes, for at most
// maxRemembered, so that an early retry starts no process.
func (e *Engine) Prepare(ctx context.Context, m Module) error {
	key, err := e.moduleKey(m.Digest)
	if err == nil {
		err = reserved.Check(m.Environment)
	}
	if err != nil {
		return &failure.Error{Op: failure.OpInit, Class: failure.Unknown, Err: err}
	}
	if _, _, done := e.prepared(key); done {
		return nil
	}
	if err := e.options.Sandbox.Check(); err != nil {
		return &failure.Error{Op: failure.OpInit, Class: failure.Unknown, Err: err}
	}
	if err := e.remembered(key); err != nil {
		return err
	}
	result := e.inits.DoChan(key, func() (any, error) {
		if _, _, done := e.prepared(key); done {
			return nil, nil
		}
		// It continues if the caller that started it gives up: others wait for it.
		stamp := e.mirrored.Stamp() // before: changes in the meantime count
		err := e.initialise(context.WithoutCancel(ctx), key, m)
		e.remember(key, stamp, err)
		return nil, err
	})
	select {
	case r := <-result:
		return r.Err
	case <-ctx.Done():
		return &failure.Error{Op: failure.OpInit, Class: failure.Interrupted, Err: context.Cause(ctx)}
	}
}

// maxRemembered is how long a failed initialization is not retried.
const maxRemembered = 10 * time.Minute

// failedInit is why a module could not be initialized from the mirror as it was.
type failedInit struct {
	stamp string
	until time.Time
	err   error
}

// remember stores that a module could not be initialized because a provider is missing. Other
// failures, such as a killed engine or a full disk, may be gone at the next attempt.
func (e *Engine) remember(key, stamp string, err error) {
	if e.options.ProviderMirror == "" || e.options.AllowDirect || failure.ClassOf(err) != failure.ProviderNotInstalled {
		e.failed.Delete(key)
		return
	}
	e.failed.Store(key, failedInit{stamp: stamp, until: e.options.Clock.Now().Add(maxRemembered), err: err})
}

// remembered returns why a module could not be initialized, if that still holds.
func (e *Engine) remembered(key string) error {
	known, ok := e.failed.Load(key)
	if !ok {
		return nil
	}
	last := known.(failedInit)
	if last.stamp != e.mirrored.Stamp() || e.options.Clock.Now().After(last.until) {
		return nil
	}
	return last.err
}

// initialise prepares the module's folder under a temporary name and renames it when complete.
func (e *Engine) initialise(ctx context.Context, key string, m Module) error {
	defer e.awaitDownloads(m.Files)()
	slot, err := e.slots.Take(ctx)
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
		if err = os.RemoveAll(target); err == nil { // an earlier folder whose providers are gone
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
	checked, err := committed.forMirror(e.mirrored)
	if err != nil {
		return &failure.Error{Op: failure.OpInit, Class: failure.Unknown, Err: err}
	}
	if len(committed) > 0 {
		if err := os.WriteFile(lock, checked.encode(), 0o600); err != nil {
			return fmt.Errorf("writing the module's lock file: %w", err)
		}
	}
	if err := e.linkDownloads(dir, checked); err != nil {
		return err
	}
	if err := e.runInit(ctx, s, dir, m); err != nil {
		return err
	}
	if err := e.checkInitialised(lock, committed); err != nil {
		return err
	}
	if err := e.keepDownloads(dir); err != nil {
		return err
	}
	providers, err := e.describeProviders(staging)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(staging, providersFile), []byte(providers), 0o600)
}

// checkInitialised checks the providers that `init` selected and writes the lock file for runs.
func (e *Engine) checkInitialised(lock string, committed selections) error {
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

// runInit runs `init` in dir. `init` reads the state from the backend, so it gets one without a
// state.
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

// EmptyBackend serves an http backend without a state on loopback. It stores nothing, so use it
// only for reading.
func EmptyBackend() (address string, stop func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("serving an empty state: %w", err)
	}
	server := &http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: 10 * time.Second}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // returns when the server is closed
	}()
	stop = func() {
		_ = server.Close() // nothing can be done about an error
		<-served
	}
	return "http://" + listener.Addr().String() + "/", stop, nil
}

// leftOut are the folders of a module that runs do not need.
var leftOut = []string{"tests", "examples"}

// writeModule writes the module's files and the backend block into dir, and returns the selections
// of its lock file.
func writeModule(dir string, files fs.FS) (selections, error) {
	committed := selections{}
	for _, part := range append([]engine.Search{moduleDir}, engine.Searches...) {
		if err := os.Mkdir(filepath.Join(dir, string(part)), 0o700); err != nil {
			return nil, fmt.Errorf("creating the module's folder: %w", err)
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
			return fmt.Errorf("the module has a file %s, a name that is reserved for the operator; rename it", backendFile)
		}
		return writeFile(filepath.Join(dir, filepath.FromSlash(targetOf(name))), content)
	})
	if err != nil {
		return nil, fmt.Errorf("writing the module: %w", err)
	}
	return committed, writeFile(filepath.Join(dir, moduleDir, backendFile), []byte(backendBlock))
}

// targetOf returns where a file of the module goes. Files of searches stay beside the module.
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
