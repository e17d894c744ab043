package pulumi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/bridge"
	"github.com/machine-iac/machine-iac-operator/internal/engine/provider"
	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
	"github.com/machine-iac/machine-iac-operator/internal/engine/workdir"
)

// Defaults of Options.
const (
	DefaultSlots     = 4
	DefaultWaitDelay = 2 * time.Minute
)

// Options describe an Engine.
type Options struct {
	// Binary is the CLI, as returned by Find. The language hosts (pulumi-language-yaml) are next to
	// it.
	Binary Binary
	// WorkDir is the engine's private folder. New creates it. Only one Engine at a time can use it.
	// Its path must be short, since plugins create sockets in it.
	WorkDir string
	// Plugins is a folder with plugins as `pulumi plugin install` lays them out. It is read-only and
	// the only source of plugins.
	Plugins string
	// ProviderMirror is a folder in the layout of Terraform's filesystem mirror.
	// pulumi-resource-terraform-provider bridges its providers.
	ProviderMirror string
	// Warm configures the bridges to Terraform's providers that keep running between runs. Without a
	// Max there are none.
	Warm provider.Options
	// Attached are packages that this process serves itself, for its own programs: their names and
	// loopback ports.
	Attached map[string]int
	// Environment is set for every CLI. CLIs do not inherit the operator's environment.
	Environment map[string]string
	// Sandbox confines CLIs and their plugins; nil disables it.
	Sandbox *sandbox.Sandbox
	// Slots is the number of concurrent CLIs. Defaults to DefaultSlots.
	Slots int
	// WaitDelay is how long an interrupted CLI has to exit before it is killed. Defaults to
	// DefaultWaitDelay.
	WaitDelay time.Duration
	Logger    logr.Logger
	// Clock provides the times in reports. Defaults to the system clock.
	Clock clock.PassiveClock
}

func (o Options) withDefaults() Options {
	if o.Slots == 0 {
		o.Slots = DefaultSlots
	}
	if o.WaitDelay == 0 {
		o.WaitDelay = DefaultWaitDelay
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return o
}

func (o Options) validate() error {
	if o.Binary.Path == "" || o.WorkDir == "" {
		return errors.New("a binary, as returned by Find, and a work folder are required")
	}
	if o.WaitDelay < 0 || o.Slots < 0 {
		return errors.New("numbers and durations must not be negative")
	}
	return errors.Join(o.Warm.Validate(), reserved.Check(o.Environment))
}

// Engine runs one CLI in a private work folder:
//
//	lock                held while the engine lives
//	runs/<id>/program   the program and the stack's settings, with the configuration
//	runs/<id>/backend   the `file://` backend with the checkpoint
//	runs/<id>/run.json  the identity of the run
//	runs/<id>/home      PULUMI_HOME, with a link to the shared plugins
//	t/<slot>            temporary files of a run, under a short path
//	b                   warm bridges, under a short path
type Engine struct {
	options Options
	dir     string
	lock    *os.File
	slots   *engine.Slots[int] // their numbers
	starts  atomic.Int64
	bridges *bridge.Bridges // nil if none are kept running
	// readable is what every CLI may read besides its run: itself with the language hosts, plugins,
	// and the mirror.
	readable []string
	// mirrored verifies the bridged providers.
	mirrored *provider.Mirror

	abandonedMu sync.Mutex
	abandoned   map[string]struct{} // by ID
}

// New locks the work folder, kills processes that a dead predecessor left running in it, and
// returns an Engine. It returns an error if a living Engine uses the folder.
func New(o Options) (*Engine, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("starting pulumi: %w", err)
	}
	dir, err := workdir.Make(o.WorkDir, filepath.Join("t", "999"))
	if err != nil {
		return nil, fmt.Errorf("starting pulumi: %w", err)
	}
	lock, err := workdir.Lock(dir)
	if err != nil {
		return nil, fmt.Errorf("starting pulumi: %w", err)
	}
	e := &Engine{options: o, dir: dir, lock: lock, slots: engine.NewSlots[int](o.Slots)}
	if err := e.setUp(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting pulumi: %w", err), lock.Close())
	}
	return e, nil
}

func (e *Engine) setUp() error {
	for _, path := range []*string{&e.options.Plugins, &e.options.ProviderMirror} {
		if *path == "" {
			continue
		}
		absolute, err := filepath.Abs(*path) // they are used from other folders
		if err != nil {
			return err
		}
		*path = absolute
	}
	var err error
	if e.mirrored, err = provider.OpenMirror(e.options.ProviderMirror); err != nil {
		return err
	}
	e.readable = slices.Concat(e.options.Binary.files(), sandbox.Tree(e.options.Plugins),
		sandbox.Tree(e.options.ProviderMirror))
	if err := os.MkdirAll(e.runs(), 0o700); err != nil {
		return err
	}
	ended, err := workdir.KillProcesses(e.dir)
	if err != nil {
		return fmt.Errorf("killing the processes of a predecessor: %w", err)
	}
	if ended > 0 {
		e.options.Logger.Info("Killed processes that a predecessor left behind", "count", ended)
	}
	for _, left := range []string{e.temporary(), e.kept()} {
		if err := os.RemoveAll(left); err != nil {
			return err
		}
	}
	if e.abandoned, err = stripRuns(e.runs()); err != nil {
		return err
	}
	e.keepBridges()
	for n := range e.options.Slots {
		e.slots.Put(n)
	}
	return os.Mkdir(e.temporary(), 0o700)
}

// keepBridges enables warm bridges if they are configured and installed.
func (e *Engine) keepBridges() {
	options, file := e.options.Warm, bridge.Find(e.options.Plugins)
	if options.Max <= 0 || file == "" {
		return
	}
	options.Logger, options.Sandbox = e.options.Logger, e.options.Sandbox
	e.bridges = bridge.New(e.kept(), file, sandbox.Tree(e.options.ProviderMirror), options)
}

func (e *Engine) kept() string      { return filepath.Join(e.dir, "b") }
func (e *Engine) runs() string      { return filepath.Join(e.dir, "runs") }
func (e *Engine) temporary() string { return filepath.Join(e.dir, "t") }

// Binary returns the CLI.
func (e *Engine) Binary() Binary { return e.options.Binary }

// Starts returns the number of CLI processes started so far.
func (e *Engine) Starts() int64 { return e.starts.Load() }

// Close rejects new runs, waits until every run is closed, and releases the work folder. If ctx
// ends first, the folder stays locked and Close can be called again.
func (e *Engine) Close(ctx context.Context) error {
	return e.slots.Close(ctx, func() error {
		if e.bridges != nil {
			e.bridges.Close()
		}
		return e.lock.Close()
	})
}

// reserved are environment variables that would change what is run rather than with which
// credentials.
var reserved = workdir.Reserved{Names: []string{"HOME", "TMPDIR", "PATH", sandbox.Variable},
	Prefixes: []string{"PULUMI_", "TF_", "LD_"}}

// pluginEnvironment returns the environment of a run's plugins, without what differs in every run.
func (e *Engine) pluginEnvironment(r RunSpec) map[string]string {
	// Many short processes run concurrently, so one thread each is enough. Most of their garbage
	// arises at the start and goes with the process, so they collect late. Modules with large
	// providers can override this.
	environment := map[string]string{"GOMAXPROCS": "1", "GOGC": "400"}
	maps.Copy(environment, e.options.Environment)
	maps.Copy(environment, r.Environment)
	environment["PULUMI_DYNAMIC_TF_PLUGIN_CACHE_DIR"] = e.options.ProviderMirror
	return environment
}

// environment returns the full environment of a run's CLI.
func (e *Engine) environment(f *Workspace) map[string]string {
	environment := e.pluginEnvironment(f.run)
	maps.Copy(environment, f.files)
	maps.Copy(environment, map[string]string{
		"HOME":                     f.path("home"),
		"PATH":                     filepath.Dir(e.options.Binary.Path),
		"TMPDIR":                   f.temporary(),
		"PULUMI_HOME":              f.path("home"),
		"PULUMI_BACKEND_URL":       "file://" + f.path(backendDir),
		"PULUMI_SKIP_UPDATE_CHECK": "true",
		"PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION":   "true",
		"PULUMI_IGNORE_AMBIENT_PLUGINS":                 "true",
		"PULUMI_DIY_BACKEND_DISABLE_CHECKPOINT_BACKUPS": "true",
		"PULUMI_AUTOMATION_API":                         "true",
		// Makes the CLI write its events.
		"PULUMI_DEBUG_COMMANDS": "true",
	})
	if f.key != nil {
		environment[serviceAddress], environment[serviceToken] = "unix://"+f.socket(), f.run.Key.token(f.run.ID)
	} else {
		environment["PULUMI_CONFIG_PASSPHRASE"] = f.run.Key.passphrase
	}
	if attached := e.options.attached(f.relay); attached != "" {
		environment["PULUMI_DEBUG_PROVIDERS"] = attached
	}
	return environment
}
