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

	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
	"github.com/machine-iac/machine-iac-operator/internal/engine/tofu"
	"github.com/machine-iac/machine-iac-operator/internal/plan/stub"
)

// DefaultInitTimeout bounds the initialisation of a module where [Options] do not.
const DefaultInitTimeout = 5 * time.Minute

// waitDelay is how long an interrupted engine may take before it is killed: it has nothing to save.
const waitDelay = 5 * time.Second

// Options describe a Planner. Binary and CacheDir must be set.
type Options struct {
	// Binary is the engine.
	Binary tofu.Binary
	// CacheDir keeps initialised modules, for any number of processes. What is in it may be removed at any time.
	CacheDir string
	// ProviderMirror is a folder in the layout of a filesystem mirror, and then the only source of providers. Where it is empty, an
	// initialisation gets them as the user's own configuration of the engine says.
	ProviderMirror string
	// InitEnvironment is what an initialisation gets to see beside what it must; for proxies and the user's own configuration.
	InitEnvironment map[string]string
	// Parallel bounds the engines that run at once; zero means one.
	Parallel int
	// Sandbox confines engines and providers; nil confines nothing. An initialisation by the user's own configuration is not confined: no
	// provider is started by it.
	Sandbox *sandbox.Sandbox
	// InitTimeout bounds the initialisation of a module; zero means DefaultInitTimeout.
	InitTimeout time.Duration
}

// Module is what is planned.
type Module struct {
	// Files are the module's.
	Files fs.FS
	// Environment is what its providers need to see to return their schemas. No credentials: the providers are never configured.
	Environment map[string]string
	// Stack reports that it is a stack, which program.Planner plans.
	Stack bool
	// Locals returns the values of a stack's locals for an input, as JSON decodes them, and true in place of each that is unknown; nil
	// where there are none, and for modules.
	Locals func(in Input) (values, unknown any, err error)
}

// Planner plans modules. It is safe for concurrent use.
type Planner struct {
	options Options
	// scratch is private to this process, and its path is short, for sockets are in it.
	scratch string
	slots   chan struct{}
	// readable is what every engine may read: the mirror, and what the providers that are linked in the cache are links to.
	readable []string

	mu      sync.Mutex
	modules map[string]*module
	count   int
}

// New returns a Planner. Close it.
func New(o Options) (*Planner, error) {
	if o.Binary.Path == "" || o.CacheDir == "" {
		return nil, errors.New("planning offline: an engine and a folder to keep modules in are required")
	}
	if o.InitTimeout == 0 {
		o.InitTimeout = DefaultInitTimeout
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
		return nil, fmt.Errorf("finding the provider mirror: %s is no folder; name one that is laid out as a filesystem mirror", o.ProviderMirror)
	}
	if err := os.MkdirAll(o.CacheDir, 0o700); err != nil {
		return nil, fmt.Errorf("making the cache folder: %w", err)
	}
	scratch, err := stub.MakeScratch()
	if err != nil {
		return nil, err
	}
	p := &Planner{
		options: o, scratch: scratch, slots: make(chan struct{}, max(1, o.Parallel)), readable: sandbox.Tree(o.ProviderMirror), modules: map[string]*module{},
	}
	if err := p.writeConfig(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(scratch))
	}
	return p, nil
}

// config is the file with the engine's configuration.
func (p *Planner) config() string { return filepath.Join(p.scratch, "cli.tfrc") }

func (p *Planner) writeConfig() error {
	content := "disable_checkpoint = true\n"
	if p.options.ProviderMirror != "" {
		content += "provider_installation {\n  filesystem_mirror {\n    path = " + strconv.Quote(p.options.ProviderMirror) + "\n  }\n}\n"
	}
	if err := os.WriteFile(p.config(), []byte(content), 0o600); err != nil {
		return fmt.Errorf("writing the engine's configuration: %w", err)
	}
	return nil
}

// Close ends what runs and removes what was written outside of the cache. No plan may be under way.
func (p *Planner) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var failed []error
	for _, one := range p.modules {
		failed = append(failed, one.close())
	}
	return errors.Join(append(failed, os.RemoveAll(p.scratch))...)
}

// folder makes a new folder for this process.
func (p *Planner) folder() (string, error) {
	p.mu.Lock()
	p.count++
	dir := filepath.Join(p.scratch, strconv.Itoa(p.count))
	p.mu.Unlock()
	return dir, os.Mkdir(dir, 0o700)
}

// engine returns the CLI in dir, with a built environment: the one given, if any, wins.
func (p *Planner) engine(dir string, environment map[string]string, confined *sandbox.Sandbox) (*tfexec.Terraform, error) {
	if err := confined.Check(); err != nil {
		return nil, err
	}
	engine, err := tfexec.NewTerraform(dir, confined.Program(p.options.Binary.Path))
	if err != nil {
		return nil, err
	}
	all := map[string]string{
		"HOME": p.scratch, "TMPDIR": p.scratch, "CHECKPOINT_DISABLE": "1",
		// A plan is short and small: to collect less garbage takes a quarter less CPU time.
		"GOGC": "400",
	}
	if environment == nil || p.options.ProviderMirror != "" { // else it is the user's own, wherever that is
		all["TF_CLI_CONFIG_FILE"] = p.config()
	}
	maps.Copy(all, environment)
	if confined != nil { // the scratch folder has the state of what is planned beside this
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

// module returns the module, initialised.
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

// format changes when what is kept in the cache does.
const format = "2"

// key names a module's folder in the cache. Another engine or mirror initialises anew, since what it would find may not fit.
func (p *Planner) key(s *source) (string, error) {
	digest, err := s.digest()
	if err != nil {
		return "", err
	}
	with := strings.Join([]string{format, p.options.Binary.Name, p.options.Binary.Version.String(), p.options.ProviderMirror}, "\n")
	return digest[:32] + "-" + hex.EncodeToString(sum(with)[:8]), nil
}
