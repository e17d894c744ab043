package tofu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/singleflight"
	"k8s.io/utils/clock"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/provider"
	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
	"github.com/machine-iac/machine-iac-operator/internal/engine/workdir"
)

// Defaults of Options.
const (
	DefaultSlots       = 4
	DefaultWaitDelay   = 2 * time.Minute
	DefaultInitTimeout = 5 * time.Minute
)

// Options describe an Engine.
type Options struct {
	// Binary is the CLI, as returned by Find.
	Binary Binary
	// WorkDir is the engine's private folder. New creates it. Only one Engine at a time can use it.
	WorkDir string
	// ProviderMirror is a folder in the layout of a filesystem mirror. It is the only source of
	// providers; without it, only the built-in provider is available.
	ProviderMirror string
	// AllowDirect lets `init` download providers that the mirror lacks from their registries.
	AllowDirect bool
	// Environment is set for every engine, for example proxies and CA bundles. Engines do not inherit
	// the operator's environment.
	Environment map[string]string
	// Slots is the number of concurrent engines. Defaults to DefaultSlots.
	Slots int
	// WaitDelay is how long an interrupted engine has to save its state before it is killed. Defaults
	// to DefaultWaitDelay.
	WaitDelay time.Duration
	// InitTimeout limits the initialization of a module. Defaults to DefaultInitTimeout.
	InitTimeout time.Duration
	// VerifyEachRun verifies the providers' checksums in every run. By default they are verified once,
	// when the module is initialized: reading a provider of some 100 MB takes a third of the time of a
	// plan.
	VerifyEachRun bool
	// Sandbox confines engines and warm providers; nil disables it.
	Sandbox *sandbox.Sandbox
	// Warm configures which providers keep running between runs. The zero value keeps none.
	Warm   provider.Options
	Logger logr.Logger
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
	if o.InitTimeout == 0 {
		o.InitTimeout = DefaultInitTimeout
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return o
}

func (o Options) validate() error {
	if o.Binary.Path == "" || o.Binary.Version == nil {
		return errors.New("no engine binary: use one that Find returned")
	}
	if o.WorkDir == "" {
		return errors.New("no work folder")
	}
	if o.Slots < 0 || o.WaitDelay < 0 || o.InitTimeout < 0 {
		return errors.New("numbers and durations must not be negative")
	}
	return errors.Join(o.Warm.Validate(), reserved.Check(o.Environment))
}

// Engine runs one CLI in a private work folder:
//
//	lock               held while the engine lives
//	cli.tfrc           the CLI's configuration
//	modules/<key>/     an initialized module
//	downloads/<hash>/  a provider that was downloaded or unpacked, for all modules
//	runs/<id>/         a run, from Open to Close
//	slots/<n>          a link to the folder whose run has the slot
//	providers/<n>/     a warm provider
type Engine struct {
	options Options
	dir     workDir
	lock    *os.File
	slots   *engine.Slots[*slot]
	pool    *provider.Pool // nil if providers are not kept running
	// mirrored verifies the providers of the mirror.
	mirrored *provider.Mirror
	// readable is what every engine may read besides its module: the mirror, downloads, and the CLI's
	// configuration.
	readable []string
	inits    singleflight.Group
	// downloading maps addresses of providers to a mutex, which the module that may download it holds.
	downloading sync.Map
	// keeping guards the folders of downloads, and verified, the checksums of those that have their content.
	keeping  sync.Mutex
	verified map[string]bool
	// failed maps module keys to why they could not be initialized from the mirror.
	failed sync.Map
	starts atomic.Int64

	abandonedMu sync.Mutex
	abandoned   map[string]AbandonedRun
}

// New locks the work folder, kills processes that a dead predecessor left running in it, and
// returns an Engine. It returns an error if a living Engine uses the folder.
func New(o Options) (*Engine, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("starting the engine: %w", err)
	}
	dir, err := makeWorkDir(o.WorkDir)
	if err != nil {
		return nil, fmt.Errorf("starting the engine: %w", err)
	}
	lock, err := workdir.Lock(string(dir))
	if err != nil {
		return nil, fmt.Errorf("starting the engine: %w", err)
	}
	e := &Engine{options: o, dir: dir, lock: lock, slots: engine.NewSlots[*slot](o.Slots), verified: map[string]bool{}}
	if err := e.setUp(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the engine: %w", err), lock.Close())
	}
	return e, nil
}

func (e *Engine) setUp() error {
	ended, err := workdir.KillProcesses(e.dir.runs())
	if err != nil {
		return fmt.Errorf("killing the processes of a predecessor: %w", err)
	}
	if ended > 0 {
		e.options.Logger.Info("Killed processes that a predecessor left behind", "count", ended)
	}
	if err := e.dir.clean(); err != nil {
		return err
	}
	if e.abandoned, err = readAbandonedRuns(e.dir.runs(), e.options.Logger); err != nil {
		return err
	}
	mirror, err := e.mirror()
	if err != nil {
		return err
	}
	if e.mirrored, err = provider.OpenMirror(mirror); err != nil {
		return err
	}
	if manifest, content := e.mirrored.Manifest(); content == nil && e.options.ProviderMirror != "" {
		e.options.Logger.Info("The provider mirror has no manifest; only the checksums in lock files are verified",
			"mirror", mirror, "manifest", manifest)
	}
	e.readable = append(sandbox.Tree(mirror), e.dir.downloads(), e.dir.cliConfig())
	if e.pool, err = e.makePool(); err != nil {
		return err
	}
	if err := os.WriteFile(e.dir.cliConfig(), cliConfig(mirror, e.options.AllowDirect), 0o600); err != nil {
		return fmt.Errorf("writing the engine's configuration: %w", err)
	}
	for n := range e.options.Slots {
		slot, err := newSlot(e, n)
		if err != nil {
			return err
		}
		e.slots.Put(slot)
	}
	return nil
}

// mirror returns the absolute path of the provider mirror, since engines link to it from other
// folders.
func (e *Engine) mirror() (string, error) {
	if e.options.ProviderMirror == "" {
		return e.dir.noProviders(), nil
	}
	path, err := filepath.Abs(e.options.ProviderMirror)
	if err != nil {
		return "", fmt.Errorf("finding the provider mirror: %w", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("finding the provider mirror: %w", err)
	}
	if !info.IsDir() {
		return "", fmt.Errorf("finding the provider mirror: %s is not a folder", path)
	}
	return path, nil
}

// Binary returns the CLI.
func (e *Engine) Binary() Binary { return e.options.Binary }

// Starts returns the number of CLI processes started so far.
func (e *Engine) Starts() int64 { return e.starts.Load() }

// Close rejects new runs, waits until every run is closed, and releases the work folder. If ctx
// ends first, the folder stays locked and Close can be called again.
func (e *Engine) Close(ctx context.Context) error {
	return e.slots.Close(ctx, func() error {
		if e.pool != nil {
			e.pool.Close()
		}
		return e.lock.Close()
	})
}

// release returns a slot. It first points the slot away from the run, so that it never leads to a
// removed folder.
func (e *Engine) release(s *slot) error {
	err := s.rest()
	e.slots.Put(s)
	return err
}
