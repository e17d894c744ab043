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
	// WorkDir is the private folder of the engine; it is made if absent. One Engine at a time may have it.
	WorkDir string
	// ProviderMirror is a folder in the layout of a filesystem mirror. Providers come from it alone, or, where it is empty, there
	// are none but the built-in one.
	ProviderMirror string
	// AllowDirect lets providers that the mirror lacks be downloaded from their registries while a module is initialised.
	AllowDirect bool
	// Environment is set for every engine, for example proxies and the file of trusted certificates. Nothing else of the
	// operator's own environment reaches an engine.
	Environment map[string]string
	// Slots is how many engines may run at once; zero means DefaultSlots.
	Slots int
	// WaitDelay is how long an interrupted engine may take to save its state before it is killed; zero means DefaultWaitDelay.
	WaitDelay time.Duration
	// InitTimeout bounds the initialisation of a module; zero means DefaultInitTimeout.
	InitTimeout time.Duration
	// VerifyEachRun has every run check the providers' checksums again. Without it they are checked once, when the module is
	// initialised: reading a provider of some 100 MB costs a third of a plan.
	VerifyEachRun bool
	// Sandbox confines engines and warm providers; nil confines nothing.
	Sandbox *sandbox.Sandbox
	// Warm says which providers are kept running between runs; its zero value keeps none.
	Warm   provider.Options
	Logger logr.Logger
	// Clock provides the times in reports; nil means the machine's.
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
		return errors.New("no engine binary is given: use one that Find returned")
	}
	if o.WorkDir == "" {
		return errors.New("no work folder is given")
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
//	modules/<key>/     a module, initialised
//	runs/<id>/         a run, from Open to Close
//	slots/<n>          a link to the folder whose run has the slot
//	providers/<n>/     a provider that is kept running
type Engine struct {
	options Options
	dir     workDir
	lock    *os.File
	slots   chan *slot
	pool    *provider.Pool // nil where providers are not kept
	// readable is what every engine may read, beside its module: the mirror, and the CLI's configuration.
	readable []string
	inits    singleflight.Group
	starts   atomic.Int64
	closed   chan struct{}

	closing sync.Once
	closeMu sync.Mutex // held while Close waits; guards lock

	abandonedMu sync.Mutex
	abandoned   map[string]AbandonedRun
}

// New takes the work folder, ends what a predecessor that died has left running in it, and returns an Engine. The folder of
// another living Engine is refused.
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
	e := &Engine{
		options: o,
		dir:     dir,
		lock:    lock,
		slots:   make(chan *slot, o.Slots),
		closed:  make(chan struct{}),
	}
	if err := e.setUp(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the engine: %w", err), lock.Close())
	}
	return e, nil
}

func (e *Engine) setUp() error {
	ended, err := workdir.KillProcesses(e.dir.runs())
	if err != nil {
		return fmt.Errorf("ending the processes of a predecessor: %w", err)
	}
	if ended > 0 {
		e.options.Logger.Info("ended processes that a predecessor left behind", "count", ended)
	}
	if err := e.dir.clean(); err != nil {
		return err
	}
	if e.abandoned, err = readAbandonedRuns(e.dir.runs()); err != nil {
		return err
	}
	mirror, err := e.mirror()
	if err != nil {
		return err
	}
	e.readable = append(sandbox.Tree(mirror), e.dir.cliConfig())
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
		e.slots <- slot
	}
	return nil
}

// mirror returns the absolute path of the provider mirror: engines link to it from other folders.
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
		return "", fmt.Errorf("finding the provider mirror: %s is no folder", path)
	}
	return path, nil
}

// Binary returns the CLI.
func (e *Engine) Binary() Binary { return e.options.Binary }

// Starts counts the CLI processes that were started so far.
func (e *Engine) Starts() int64 { return e.starts.Load() }

// Close refuses what comes, waits for every run to be closed, and gives the work folder back. When ctx ends first the folder
// stays taken, and Close may be called again.
func (e *Engine) Close(ctx context.Context) error {
	e.closing.Do(func() { close(e.closed) })
	e.closeMu.Lock()
	defer e.closeMu.Unlock()
	if e.lock == nil {
		return nil
	}
	var idle []*slot
	for range e.options.Slots {
		select {
		case slot := <-e.slots:
			idle = append(idle, slot)
		case <-ctx.Done():
			for _, slot := range idle {
				e.slots <- slot
			}
			return fmt.Errorf("closing the engine: %d of its runs are still open: %w", e.options.Slots-len(idle), context.Cause(ctx))
		}
	}
	if e.pool != nil {
		e.pool.Close()
	}
	lock := e.lock
	e.lock = nil
	return lock.Close()
}

// acquire returns a slot as soon as there is one.
func (e *Engine) acquire(ctx context.Context) (*slot, error) {
	select {
	case <-e.closed:
		return nil, errors.New("the engine is closed")
	default:
	}
	select {
	case slot := <-e.slots:
		return slot, nil
	case <-e.closed:
		return nil, errors.New("the engine is closed")
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for a free engine: %w", context.Cause(ctx))
	}
}

// release gives a slot back. It is pointed away from the run first, so that no path leads to a folder that is gone.
func (e *Engine) release(s *slot) error {
	err := s.rest()
	e.slots <- s
	return err
}
