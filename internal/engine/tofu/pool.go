package tofu

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/hashicorp/terraform-exec/tfexec"

	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
	"github.com/machine-iac/machine-iac-operator/internal/engine/workdir"
)

// Defaults of WarmOptions.
const (
	DefaultWarmUses    = 100
	DefaultWarmIdleTTL = 5 * time.Minute
)

// WarmOptions say which provider plugins are kept running between runs. Starting one costs most of a run's CPU time; each costs
// its memory while it is kept. A warm provider does not find the module's files in its working folder, as one that the engine
// starts does.
type WarmOptions struct {
	// Max is how many providers may run at once; zero has every engine start its own.
	Max int
	// Uses is how many runs a provider serves before it is replaced; zero means DefaultWarmUses.
	Uses int
	// IdleTTL is how long a provider waits for the next run before it is ended; zero means DefaultWarmIdleTTL.
	IdleTTL time.Duration
}

// warm is a running provider, as a pool sees it.
type warm interface {
	reattach() tfexec.ReattachConfig
	exited() bool
	end() error
}

// pooled is a running provider and what the pool knows of it.
type pooled struct {
	warm
	key  string
	uses int
	idle *time.Timer // ends it; set while it is idle
}

// pool lends running providers, each to one run at a time. Whatever fails in it leaves the run without: the engine then starts
// the provider itself.
type pool struct {
	dir     string
	options WarmOptions
	log     logr.Logger
	start   func(dir, file string, environment map[string]string) (warm, error)

	mu      sync.Mutex
	closed  bool
	started int // names folders
	running int // lent, idle, or being started
	idle    []*pooled
	ending  sync.WaitGroup
}

func newPool(dir string, o WarmOptions, confined *sandbox.Sandbox, log logr.Logger) *pool {
	if o.Uses == 0 {
		o.Uses = DefaultWarmUses
	}
	if o.IdleTTL == 0 {
		o.IdleTTL = DefaultWarmIdleTTL
	}
	return &pool{dir: dir, options: o, log: log, start: startWarm(confined)}
}

// startWarm returns what starts a provider for a pool. That returns a nil interface with an error.
func startWarm(confined *sandbox.Sandbox) func(dir, file string, environment map[string]string) (warm, error) {
	return func(dir, file string, environment map[string]string) (warm, error) {
		started, err := startProvider(dir, file, environment, confined)
		if err != nil {
			return nil, err
		}
		return started, nil
	}
}

// lease is the providers that a run has.
type lease struct {
	pool      *pool
	providers map[string]*pooled
}

// lend returns the providers that can be had for these files, by address. The lease is never nil and may be empty.
func (p *pool) lend(files, environment map[string]string) *lease {
	l := &lease{pool: p, providers: map[string]*pooled{}}
	for address, file := range files {
		found, err := p.take(file, environment)
		if err != nil {
			p.log.Error(err, "no warm provider; the engine starts its own", "provider", filepath.Base(file))
		}
		if found != nil {
			l.providers[address] = found
		}
	}
	return l
}

// take returns an idle provider, or a new one if there is room, or else nil.
func (p *pool) take(file string, environment map[string]string) (*pooled, error) {
	key := providerKey(file, environment)
	found, dir := p.reserve(key)
	if found != nil || dir == "" {
		return found, nil
	}
	started, err := p.start(dir, file, environment)
	if err != nil {
		p.mu.Lock()
		p.running--
		p.mu.Unlock()
		return nil, err
	}
	return &pooled{warm: started, key: key, uses: 1}, nil
}

// reserve returns an idle provider with the key, or else the folder for a new one, "" where there is no room.
func (p *pool) reserve(key string) (*pooled, string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ""
	}
	// the one used last is the one whose memory is still there
	for i := len(p.idle) - 1; i >= 0; i-- {
		candidate := p.idle[i]
		if candidate.key != key {
			continue
		}
		p.forget(i)
		if candidate.exited() {
			p.endLater(candidate)
			continue
		}
		candidate.uses++
		return candidate, ""
	}
	if p.running >= p.options.Max && len(p.idle) > 0 {
		oldest := p.idle[0]
		p.forget(0)
		p.endLater(oldest)
	}
	if p.running >= p.options.Max {
		return nil, ""
	}
	p.running++
	p.started++
	return nil, filepath.Join(p.dir, strconv.Itoa(p.started))
}

// forget takes an idle provider out of the list. The caller holds the lock.
func (p *pool) forget(i int) {
	p.idle[i].idle.Stop()
	p.idle = slices.Delete(p.idle, i, i+1)
}

// endLater ends a provider that no run uses, without waiting. The caller holds the lock.
func (p *pool) endLater(gone *pooled) {
	p.running--
	p.ending.Go(func() {
		if err := gone.end(); err != nil {
			p.log.Error(err, "ending a warm provider")
		}
	})
}

// giveBack makes a provider idle, or ends it where it has served long enough.
func (p *pool) giveBack(back *pooled) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || back.uses >= p.options.Uses || back.exited() {
		p.endLater(back)
		return
	}
	p.idle = append(p.idle, back)
	back.idle = time.AfterFunc(p.options.IdleTTL, func() { p.expire(back) })
}

func (p *pool) expire(old *pooled) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.idle, old); i >= 0 {
		p.forget(i)
		p.endLater(old)
	}
}

// close ends the idle providers and waits until they and those that were being ended are gone.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	for len(p.idle) > 0 {
		last := p.idle[len(p.idle)-1]
		p.forget(len(p.idle) - 1)
		p.endLater(last)
	}
	p.mu.Unlock()
	p.ending.Wait()
}

// reattach is what the engine needs to use the providers.
func (l *lease) reattach() tfexec.ReattachInfo {
	info := tfexec.ReattachInfo{}
	for address, provider := range l.providers {
		info[address] = provider.reattach()
	}
	return info
}

// giveBack ends the lease of providers that are well.
func (l *lease) giveBack() {
	for address, provider := range l.providers {
		delete(l.providers, address)
		l.pool.giveBack(provider)
	}
}

// discard ends the providers, and waits until they are gone: what a run began does not go on after it.
func (l *lease) discard() error {
	var errs []error
	for address, provider := range l.providers {
		delete(l.providers, address)
		errs = append(errs, provider.end())
		l.pool.mu.Lock()
		l.pool.running--
		l.pool.mu.Unlock()
	}
	return errors.Join(errs...)
}

// makePool returns the engine's pool, nil where providers are not kept.
func (e *Engine) makePool() (*pool, error) {
	if e.options.Warm.Max <= 0 {
		return nil, nil
	}
	if _, err := workdir.KillProcesses(e.dir.providers()); err != nil {
		return nil, fmt.Errorf("ending the providers of a predecessor: %w", err)
	}
	if err := os.RemoveAll(e.dir.providers()); err != nil {
		return nil, fmt.Errorf("cleaning the work folder: %w", err)
	}
	return newPool(e.dir.providers(), e.options.Warm, e.options.Sandbox, e.options.Logger), nil
}
