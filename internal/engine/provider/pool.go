package provider

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/terraform-exec/tfexec"
	"k8s.io/utils/clock"

	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
	"github.com/machine-iac/machine-iac-operator/internal/engine/workdir"
)

// responseTimeout is how long a provider has to respond before it is lent. A healthy one needs a
// millisecond.
const responseTimeout = 2 * time.Second

// Running is a running plugin, as seen by a pool.
type Running interface {
	// Responds returns an error unless the plugin responds before ctx ends.
	Responds(ctx context.Context) error
	// Size returns the resources that it uses.
	Size() Size
	// Exited reports whether it has exited.
	Exited() bool
	// End kills it with all its child processes, and waits for it.
	End() error
}

// Starter starts a plugin in its own folder with exactly this environment.
type Starter func(dir, file string, environment map[string]string) (Running, error)

// pooled is a running provider and the pool's data about it.
type pooled struct {
	Running
	key     key
	uses    int
	started time.Time
	// first is its size after its first run, last after its last.
	first, last Size
	// outdated means that its credentials were replaced.
	outdated bool
	idle     clock.Timer // kills it; set while it is idle
}

// Pool lends running providers, each to one run at a time. If anything fails, the run gets none,
// and the engine starts the provider itself.
type Pool struct {
	dir     string
	options Options
	start   Starter

	mu     sync.Mutex
	closed bool
	named  int // for folder names
	// places is how many are lent, idle, or starting.
	places int
	lent   map[*pooled]struct{}
	idle   []*pooled
	ending sync.WaitGroup
}

// NewPool returns a pool that keeps its providers' folders in dir, which it owns.
func NewPool(dir string, o Options) *Pool { return NewPoolOf(dir, o, startConfined(o.Sandbox)) }

// NewPoolOf returns a pool of plugins that start starts, such as Pulumi's.
func NewPoolOf(dir string, o Options, start Starter) *Pool {
	return &Pool{dir: dir, options: o.withDefaults(), lent: map[*pooled]struct{}{}, start: start}
}

// startConfined returns a Starter of Terraform's providers. With an error, that returns a nil
// interface.
func startConfined(confined *sandbox.Sandbox) Starter {
	return func(dir, file string, environment map[string]string) (Running, error) {
		started, err := Start(dir, file, environment, confined)
		if err != nil {
			return nil, err
		}
		if err := started.Open(); err != nil {
			return nil, errors.Join(err, started.End())
		}
		return started, nil
	}
}

// Use describes what providers are lent for.
type Use struct {
	// Files are the plugins, by provider address.
	Files map[string]string
	// Environment is their complete environment, except for Secrets.
	Environment map[string]string
	// Secrets are files of credentials. The keys are environment variables that hold the paths. Each
	// plugin has its own files in its folder until it ends.
	Secrets map[string]string
	// Owner identifies the credentials, such as a module and a Secret. Providers of the same owner with
	// another environment or other files are killed: the credentials have changed. Providers of
	// different owners are never mixed. Empty means unknown.
	Owner string
	// Admit reports which processes may connect to the providers until they are given back. Nil admits
	// all.
	Admit func(pid int) bool
}

// Start starts a plugin with its environment and files. If that fails, its folder is removed.
func (u Use) Start(start Starter, dir, file string) (Running, error) {
	files, err := workdir.WriteFiles(dir, u.Secrets)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	environment := maps.Clone(u.Environment)
	if environment == nil {
		environment = map[string]string{}
	}
	maps.Copy(environment, files) // a run's own files come before what all runs have
	started, err := start(dir, file, environment)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return started, nil
}

// admits opens a plugin's door, if it has one, to the processes that the use admits.
func (u Use) admits(to Running) {
	if guarded, ok := to.(interface{ Admit(func(pid int) bool) }); ok {
		if u.Admit == nil {
			u.Admit = func(int) bool { return true }
		}
		guarded.Admit(u.Admit)
	}
}

// Lend returns the available providers. The lease is never nil, but may be empty.
func (p *Pool) Lend(ctx context.Context, use Use) *Lease {
	l := &Lease{pool: p, providers: map[string]*pooled{}}
	for address, file := range use.Files {
		found, err := p.take(ctx, address, file, use)
		if err != nil {
			p.options.Logger.Error(err, "No warm provider; the engine starts its own", "provider", filepath.Base(file))
		}
		if found != nil {
			use.admits(found.Running)
			l.providers[address] = found
		}
	}
	return l
}

// take returns an idle provider that responds, or a new one if there is room, or nil.
func (p *Pool) take(ctx context.Context, address, file string, use Use) (*pooled, error) {
	wanted, err := keyOf(address, file, use)
	if err != nil {
		return nil, err
	}
	for {
		found, dir := p.reserve(wanted)
		switch {
		case found != nil && p.responds(ctx, found):
			return found, nil
		case found != nil:
			continue
		case dir == "":
			return nil, nil
		}
		return p.startIn(dir, file, wanted, use)
	}
}

// responds reports whether a previously idle provider responds, and kills it if not.
func (p *Pool) responds(ctx context.Context, found *pooled) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), responseTimeout)
	defer cancel()
	err := found.Responds(ctx)
	if err == nil {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.lent, found)
	p.endLater(found, err.Error())
	return false
}

func (p *Pool) startIn(dir, file string, wanted key, use Use) (*pooled, error) {
	started, err := use.Start(p.start, dir, file)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.places--
		return nil, err
	}
	found := &pooled{Running: started, key: wanted, uses: 1, started: p.options.Clock.Now()}
	p.lent[found] = struct{}{}
	return found, nil
}

// reserve marks an idle provider with the key as lent and returns it. Otherwise it returns the
// folder for a new one, or "" if there is no room.
func (p *Pool) reserve(wanted key) (*pooled, string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ""
	}
	p.outdate(wanted)
	// prefer the one used last: its memory is least likely to be swapped out
	for i := len(p.idle) - 1; i >= 0; i-- {
		candidate := p.idle[i]
		if candidate.key != wanted {
			continue
		}
		p.forget(i)
		if reason := p.unfit(candidate); reason != "" {
			p.endLater(candidate, reason)
			continue
		}
		candidate.uses++
		p.lent[candidate] = struct{}{}
		return candidate, ""
	}
	if p.places >= p.options.Max && len(p.idle) > 0 {
		p.endIdle(0, "replaced by another provider")
	}
	if p.places >= p.options.Max {
		return nil, ""
	}
	p.places++
	p.named++
	return nil, filepath.Join(p.dir, strconv.Itoa(p.named))
}

// outdate kills the providers of the same owner with other credentials: idle ones now, the others
// when they come back. The caller holds the lock.
func (p *Pool) outdate(now key) {
	for i := len(p.idle) - 1; i >= 0; i-- {
		if now.replaces(p.idle[i].key) {
			p.endIdle(i, "its credentials have changed")
		}
	}
	for one := range p.lent {
		if now.replaces(one.key) {
			one.outdated = true
		}
	}
}

// unfit returns why a provider must not be lent again, or "". The caller holds the lock.
func (p *Pool) unfit(one *pooled) string {
	switch {
	case one.Exited():
		return "its process has exited"
	case one.outdated:
		return "its credentials have changed"
	case one.uses >= p.options.Uses:
		return "it has served the maximum number of runs"
	case p.options.Clock.Since(one.started) >= p.options.MaxAge:
		return "it is too old"
	}
	return one.leaks()
}

// How far a provider may exceed twice its size after the first run before it counts as leaking.
const (
	leakedMemory = 64 << 20
	leakedFiles  = 128
)

// leaks returns what a provider has leaked in its runs, or "".
func (one *pooled) leaks() string {
	switch {
	case one.last.Processes > 0:
		return "it has left processes behind"
	case one.last.Memory > 2*one.first.Memory+leakedMemory:
		return "its memory grows"
	case one.last.Files > 2*one.first.Files+leakedFiles:
		return "its number of open files grows"
	}
	return ""
}

// forget removes an idle provider from the list. The caller holds the lock.
func (p *Pool) forget(i int) {
	p.idle[i].idle.Stop()
	p.idle = slices.Delete(p.idle, i, i+1)
}

// endIdle kills an idle provider. The caller holds the lock.
func (p *Pool) endIdle(i int, reason string) {
	gone := p.idle[i]
	p.forget(i)
	p.endLater(gone, reason)
}

// endLater kills a provider that no run uses, without waiting. The caller holds the lock.
func (p *Pool) endLater(gone *pooled, reason string) {
	p.places--
	p.options.Logger.V(1).Info("Killing a warm provider", "reason", reason, "runs", gone.uses)
	p.ending.Go(func() {
		if polite, ok := gone.Running.(interface{ Quit() }); ok {
			polite.Quit()
		}
		if err := gone.End(); err != nil {
			p.options.Logger.Error(err, "Killing a warm provider")
		}
	})
}

// giveBack makes a provider idle, or kills it if it must not serve another run.
func (p *Pool) giveBack(back *pooled) {
	if guarded, ok := back.Running.(interface{ Admit(func(pid int) bool) }); ok {
		guarded.Admit(nil)
	}
	size := back.Size()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.lent, back)
	back.last = size
	if back.uses == 1 {
		back.first = size
	}
	reason := p.unfit(back)
	if p.closed {
		reason = "the pool is closed"
	}
	if reason != "" {
		p.endLater(back, reason)
		return
	}
	p.idle = append(p.idle, back)
	back.idle = p.options.Clock.AfterFunc(p.options.IdleTTL, func() { p.expire(back) })
	p.fitMemory()
}

// fitMemory kills idle providers, longest idle first, until the rest are within the memory limit.
// The caller holds the lock.
func (p *Pool) fitMemory() {
	var sum int64
	for _, one := range p.idle {
		sum += one.last.Memory
	}
	for sum > p.options.Memory {
		sum -= p.idle[0].last.Memory
		p.endIdle(0, "idle providers use too much memory")
	}
}

func (p *Pool) expire(old *pooled) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.idle, old); i >= 0 {
		p.idle = slices.Delete(p.idle, i, i+1) // its timer has fired
		p.endLater(old, "it was idle for too long")
	}
}

// Close kills the idle providers and waits until they, and those being killed, are gone.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	for len(p.idle) > 0 {
		p.endIdle(len(p.idle)-1, "the pool is closed")
	}
	p.mu.Unlock()
	p.ending.Wait()
}

// Lease holds the providers of a run.
type Lease struct {
	pool      *Pool
	providers map[string]*pooled
}

// Reattach returns what the engine needs to use the providers, by address.
func (l *Lease) Reattach() tfexec.ReattachInfo {
	info := tfexec.ReattachInfo{}
	for address, provider := range l.providers {
		if engines, ok := provider.Running.(interface{ Reattach() tfexec.ReattachConfig }); ok {
			info[address] = engines.Reattach()
		}
	}
	return info
}

// Running returns the plugin lent under an address, or nil.
func (l *Lease) Running(address string) Running {
	if found := l.providers[address]; found != nil {
		return found.Running
	}
	return nil
}

// GiveBack ends the lease of healthy providers. It can be called again.
func (l *Lease) GiveBack() {
	for address, provider := range l.providers {
		delete(l.providers, address)
		l.pool.giveBack(provider)
	}
}

// Discard kills the providers and waits until they are gone, so that nothing continues after the
// run.
func (l *Lease) Discard() error {
	var errs []error
	for address, provider := range l.providers {
		delete(l.providers, address)
		errs = append(errs, provider.End())
		l.pool.mu.Lock()
		l.pool.places--
		delete(l.pool.lent, provider)
		l.pool.mu.Unlock()
	}
	return errors.Join(errs...)
}
