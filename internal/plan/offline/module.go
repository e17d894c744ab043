package offline

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/hashicorp/terraform-exec/tfexec"

	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/engine/tofu"
)

// stampFile lists the providers. It is written last into a module's folder.
const stampFile = "providers.json"

type providerFile struct {
	// Address is host/namespace/type.
	Address string `json:"address"`
	// File is the path of the executable, relative to the module's folder.
	File string `json:"file"`
	// Protocol is 5 or 6.
	Protocol int `json:"protocol"`
	// Schemas is the file with the stub provider's schemas, relative to the module's folder.
	Schemas string `json:"schemas"`
}

type module struct {
	planner     *Planner
	key         string
	source      *source
	environment map[string]string

	mu        sync.Mutex
	ready     bool
	idle      []*workspace
	installed []providerFile
	stubs     []*stubProvider
	reattach  tfexec.ReattachInfo
	plugins   map[string]*plugin
	closed    bool
	// once has the addresses of data sources that are planned once.
	once []string

	// unconfigured calls unconfigured providers, one call at a time.
	unconfigured unconfigured
}

func (m *module) dir() string { return filepath.Join(m.planner.options.CacheDir, m.key) }

// prepare initialises the module unless some process already has, and starts its stub providers.
func (m *module) prepare(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ready {
		return nil
	}
	providers, err := m.providers()
	if err != nil {
		if providers, err = m.initialise(ctx); err != nil {
			return err
		}
	}
	m.installed, m.reattach = providers, tfexec.ReattachInfo{}
	for _, one := range providers {
		started, err := m.serve(one, nil)
		if err != nil {
			return err
		}
		m.stubs = append(m.stubs, started)
		m.reattach[one.Address] = started.Reattach(one.Protocol)
	}
	m.ready = true
	return nil
}

// providers returns the cached providers. An error means that the module must be initialised.
func (m *module) providers() ([]providerFile, error) {
	raw, err := os.ReadFile(filepath.Join(m.dir(), stampFile))
	if err != nil {
		return nil, err
	}
	var providers []providerFile
	if err := json.Unmarshal(raw, &providers); err != nil {
		return nil, err
	}
	for _, one := range providers {
		if _, err := os.Stat(filepath.Join(m.dir(), one.File)); err != nil {
			return nil, err // the mirror is gone or has another version
		}
	}
	return providers, nil
}

// initialise fills the module's folder. It builds the folder aside and renames it when complete.
func (m *module) initialise(ctx context.Context) (providers []providerFile, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, m.planner.options.InitTimeout,
		errors.New("initialising the module took too long"))
	defer cancel()
	release, err := lock(ctx, m.dir()+".lock")
	if err != nil {
		return nil, err
	}
	defer release()
	if providers, err := m.providers(); err == nil { // another process was faster
		return providers, nil
	}
	staging := filepath.Join(m.planner.options.CacheDir, ".new-"+m.key)
	if err := os.RemoveAll(staging); err != nil { // left by a killed process
		return nil, fmt.Errorf("making the module's folder: %w", err)
	}
	if err := os.Mkdir(staging, 0o700); err != nil {
		return nil, fmt.Errorf("making the module's folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(staging)) }()
	if err := m.source.write(staging); err != nil {
		return nil, fmt.Errorf("writing the module: %w", err)
	}
	if err := m.writeLockFile(staging); err != nil {
		return nil, fmt.Errorf("writing the module's lock file: %w", err)
	}
	if err := m.runInit(ctx, staging); err != nil {
		return nil, err
	}
	if providers, err = m.readProviders(ctx, staging); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(providers)
	if err == nil {
		err = os.WriteFile(filepath.Join(staging, stampFile), raw, 0o600)
	}
	if err == nil {
		err = os.RemoveAll(m.dir())
	}
	if err == nil {
		err = os.Rename(staging, m.dir())
	}
	if err != nil {
		return nil, fmt.Errorf("keeping the initialised module: %w", err)
	}
	return providers, nil
}

// writeLockFile writes the lock file for an engine that takes providers from the mirror.
func (m *module) writeLockFile(dir string) error {
	content, ok := m.source.files[lockFile]
	if !ok {
		return nil
	}
	checked, err := tofu.LockForMirror(content, m.planner.mirrored)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, lockFile), checked, 0o600)
}

func (m *module) runInit(ctx context.Context, dir string) error {
	confined := m.planner.options.Sandbox
	if m.planner.options.ProviderMirror == "" {
		confined = nil
	}
	cli, err := m.planner.engine(dir, m.planner.options.InitEnvironment, confined)
	if err != nil {
		return fmt.Errorf("initialising the module: %w", err)
	}
	var output bytes.Buffer
	if err := cli.InitJSON(ctx, &output, tfexec.Backend(false)); err != nil {
		return engineError(ctx, failure.OpInit, tofu.ReadStream(output.Bytes(), nil), err)
	}
	return nil
}

// readProviders starts each provider installed in dir, and stores the schemas that the module uses.
func (m *module) readProviders(ctx context.Context, dir string) ([]providerFile, error) {
	installed := filepath.Join(".terraform", "providers")
	// host, namespace, type, version, platform
	files, err := filepath.Glob(filepath.Join(dir, installed, "*", "*", "*", "*", "*", "terraform-provider-*"))
	if err != nil {
		return nil, fmt.Errorf("finding the module's providers: %w", err)
	}
	providers := []providerFile{}
	for n, file := range files {
		relative, err := filepath.Rel(dir, file)
		if err != nil {
			return nil, fmt.Errorf("finding the module's providers: %w", err)
		}
		parts := strings.Split(filepath.ToSlash(relative), "/")
		one := providerFile{Address: strings.Join(parts[2:5], "/"), File: relative,
			Schemas: "schemas-" + strconv.Itoa(n)}
		started, err := m.start(file, "")
		if err != nil {
			return nil, err
		}
		one.Protocol = started.Protocol()
		schemas, err := started.Schemas(ctx)
		if err == nil {
			schemas, err = narrow(schemas, one.Protocol == 5, func(kind string) bool { return m.source.kinds[kind] })
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, one.Schemas), schemas, 0o600)
		}
		if err != nil {
			return nil, fmt.Errorf("reading the schemas of %s: %w", one.Address, err)
		}
		providers = append(providers, one)
	}
	return providers, nil
}

// start starts a provider, unless one runs for the same purpose. The caller holds the lock. The file in the cache and
// the staged one count as the same.
func (m *module) start(file, purpose string) (*plugin, error) {
	if m.closed {
		return nil, errors.New("the planner is closed")
	}
	file, err := filepath.EvalSymlinks(file)
	if err != nil {
		return nil, fmt.Errorf("finding a provider: %w", err)
	}
	name := filepath.Base(file)
	key := name + purpose
	if running, ok := m.plugins[key]; ok {
		return running, nil
	}
	dir, err := m.planner.folder()
	if err != nil {
		return nil, fmt.Errorf("starting the provider %s: %w", name, err)
	}
	running, err := startPlugin(dir, file, m.environment, m.planner.options.Sandbox)
	if err != nil {
		return nil, err
	}
	if m.plugins == nil {
		m.plugins = map[string]*plugin{}
	}
	m.plugins[key] = running
	return running, nil
}

// serve starts a stub for a provider.
func (m *module) serve(provider providerFile, prior *priorState) (*stubProvider, error) {
	schemas, err := os.ReadFile(filepath.Join(m.dir(), provider.Schemas))
	if err != nil {
		return nil, fmt.Errorf("reading the schemas of %s: %w", provider.Address, err)
	}
	dir, err := m.planner.folder()
	if err != nil {
		return nil, fmt.Errorf("serving a stub of %s: %w", provider.Address, err)
	}
	file := filepath.Join(m.dir(), provider.File)
	call := func(ctx context.Context, method string, request []byte) ([]byte, error) {
		m.mu.Lock()
		running, err := m.start(file, "")
		m.mu.Unlock()
		if err != nil {
			return nil, err
		}
		return running.Call(ctx, method, request)
	}
	started, err := newStub(stubOptions{Dir: dir, Schemas: schemas, Protocol: provider.Protocol, Call: call,
		Prior: prior})
	if err != nil {
		return nil, fmt.Errorf("serving a stub of %s: %w", provider.Address, err)
	}
	return started, nil
}

func (m *module) close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	for _, one := range m.stubs {
		one.Close()
	}
	var failed []error
	for _, one := range m.plugins {
		failed = append(failed, one.Close())
	}
	m.stubs, m.plugins = nil, nil
	return errors.Join(failed...)
}
