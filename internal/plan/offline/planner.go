package offline

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/terraform-exec/tfexec"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/engine/provider"
	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
	"github.com/machine-iac/machine-iac-operator/internal/engine/tofu"
)

const defaultInitTimeout = 5 * time.Minute

// waitDelay is the grace period of an interrupted engine, which has nothing to save.
const waitDelay = 5 * time.Second

// Options configure a Planner. Binary and CacheDir are required.
type Options struct {
	Binary tofu.Binary
	// CacheDir caches initialised modules. Processes may share it, and its content may be removed at any time.
	CacheDir string
	// ProviderMirror is a folder with the layout of a filesystem mirror, and the only source of providers. If empty,
	// initialisation uses the user's own configuration of the engine.
	ProviderMirror string
	// InitEnvironment is added to the environment of an initialisation, for proxies and the user's own configuration.
	InitEnvironment map[string]string
	// Parallel bounds concurrent engines; defaults to one.
	Parallel int
	// Sandbox confines engines and providers; optional. It does not confine an initialisation with the user's own
	// configuration, which starts no provider.
	Sandbox *sandbox.Sandbox
	// InitTimeout bounds the initialisation of a module; defaults to defaultInitTimeout.
	InitTimeout time.Duration
}

// Module is a module to plan.
type Module struct {
	Files fs.FS
	// Environment is what its providers need to return their schemas. It has no credentials: the providers are never
	// configured.
	Environment map[string]string
	// Engine selects the planner.
	Engine v1alpha1.Engine
	// Locals returns the values of a stack's locals for an input, as decoded JSON, and true in place of each unknown
	// value. Nil means no locals.
	Locals func(in Input) (values, unknown any, err error)
}

// Planner plans modules. It is safe for concurrent use.
type Planner struct {
	options Options
	// scratch is private to this process. Its path is short, because it holds sockets.
	scratch string
	slots   chan struct{}
	// readable is what every engine may read: the mirror, and the targets of links to providers in the cache.
	readable []string
	// mirrored verifies the providers of the mirror.
	mirrored *provider.Mirror

	mu      sync.Mutex
	modules map[string]*module
	count   int
}

// New returns a Planner. Callers must close it.
func New(o Options) (*Planner, error) {
	if o.Binary.Path == "" || o.CacheDir == "" {
		return nil, errors.New("planning offline: an engine and a folder to keep modules in are required")
	}
	if o.InitTimeout == 0 {
		o.InitTimeout = defaultInitTimeout
	}
	for _, dir := range []*string{&o.CacheDir, &o.ProviderMirror} {
		if *dir == "" {
			continue
		}
		absolute, err := filepath.Abs(*dir)
		if err != nil {
			return nil, fmt.Errorf("planning offline: %w", err)
		}
		*dir = absolute
	}
	if info, err := os.Stat(o.ProviderMirror); o.ProviderMirror != "" && (err != nil || !info.IsDir()) {
		return nil, fmt.Errorf("finding the provider mirror: %s is no folder; name one that is laid out as a "+
			"filesystem mirror", o.ProviderMirror)
	}
	mirrored, err := provider.OpenMirror(o.ProviderMirror)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.CacheDir, 0o700); err != nil {
		return nil, fmt.Errorf("making the cache folder: %w", err)
	}
	scratch, err := makeScratch()
	if err != nil {
		return nil, err
	}
	p := &Planner{
		options: o, scratch: scratch, slots: make(chan struct{}, max(1, o.Parallel)),
		readable: sandbox.Tree(o.ProviderMirror), mirrored: mirrored, modules: map[string]*module{},
	}
	if err := p.writeConfig(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(scratch))
	}
	return p, nil
}

// config returns the path of the engine's configuration.
func (p *Planner) config() string { return filepath.Join(p.scratch, "cli.tfrc") }

func (p *Planner) writeConfig() error {
	content := "disable_checkpoint = true\n"
	if p.options.ProviderMirror != "" {
		content += "provider_installation {\n  filesystem_mirror {\n    path = " +
			strconv.Quote(p.options.ProviderMirror) + "\n  }\n}\n"
	}
	if err := os.WriteFile(p.config(), []byte(content), 0o600); err != nil {
		return fmt.Errorf("writing the engine's configuration: %w", err)
	}
	return nil
}

// Close stops all processes and removes all files outside the cache. The caller must wait for running plans first.
func (p *Planner) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var failed []error
	for _, one := range p.modules {
		failed = append(failed, one.close())
	}
	return errors.Join(append(failed, os.RemoveAll(p.scratch))...)
}

// folder creates a folder for this process.
func (p *Planner) folder() (string, error) {
	p.mu.Lock()
	p.count++
	dir := filepath.Join(p.scratch, strconv.Itoa(p.count))
	p.mu.Unlock()
	return dir, os.Mkdir(dir, 0o700)
}

// engine returns the CLI in dir. Variables of environment override the default ones.
func (p *Planner) engine(dir string, environment map[string]string,
	confined *sandbox.Sandbox) (*tfexec.Terraform, error) {
	if err := confined.Check(); err != nil {
		return nil, err
	}
	engine, err := tfexec.NewTerraform(dir, confined.Program(p.options.Binary.Path))
	if err != nil {
		return nil, err
	}
	all := map[string]string{
		"HOME": p.scratch, "TMPDIR": p.scratch, "CHECKPOINT_DISABLE": "1",
		// A plan is short and small: collecting less garbage saves a quarter of its CPU time.
		"GOGC": "400",
	}
	if environment == nil || p.options.ProviderMirror != "" { // otherwise the user's own configuration applies
		all["TF_CLI_CONFIG_FILE"] = p.config()
	}
	maps.Copy(all, environment)
	if confined != nil { // the scratch folder holds states of other plans
		all["HOME"], all["TMPDIR"] = dir, dir
	}
	maps.Copy(all, confined.Environment(sandbox.Policy{
		Program: p.options.Binary.Path,
		Read:    slices.Concat(p.readable, []string{p.options.CacheDir, p.config()}, authorities(environment)),
		Write:   []string{dir},
	}))
	if err := engine.SetEnv(all); err != nil {
		return nil, err
	}
	return engine, engine.SetWaitDelay(waitDelay)
}

// authorities returns the files with certificate authorities that an environment names.
func authorities(environment map[string]string) []string {
	return sandbox.Named(map[string]string{"file": environment["SSL_CERT_FILE"], "folder": environment["SSL_CERT_DIR"]})
}

func (p *Planner) module(ctx context.Context, m Module) (*module, error) {
	source, err := newSource(m.Files)
	if err != nil {
		return nil, err
	}
	key, err := p.key(source)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	one, known := p.modules[key]
	if !known {
		one = &module{planner: p, key: key, source: source, environment: m.Environment}
		p.modules[key] = one
	}
	p.mu.Unlock()
	return one, one.prepare(ctx)
}

// format is the version of the cache's layout.
const format = "2"

// key names a module's folder in the cache. It depends on engine and mirror, because another may find other providers.
func (p *Planner) key(s *source) (string, error) {
	digest, err := s.digest()
	if err != nil {
		return "", err
	}
	_, manifest := p.mirrored.Manifest()
	with := strings.Join([]string{
		format, p.options.Binary.Name, p.options.Binary.Version.String(), p.options.ProviderMirror, string(manifest),
	}, "\n")
	return digest[:32] + "-" + hex.EncodeToString(sum(with)[:8]), nil
}
