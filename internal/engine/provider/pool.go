package provider

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/terraform-exec/tfexec"
	"k8s.io/utils/clock"

	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
)

// responseTimeout is how long a provider may take to respond before it is lent. One that is well takes a millisecond.
const responseTimeout = 2 * time.Second

// Running is a plugin that runs, as a pool sees it.
type Running interface {
	// Responds returns an error unless it responds before ctx ends.
	Responds(ctx context.Context) error
	// Size is what it takes of the machine.
	Size() Size
	// Exited reports whether it is gone.
	Exited() bool
	// End kills it with all that it has started, and waits for it.
	End() error
}

// Starter starts a plugin in a folder of its own with nothing but the environment.
type Starter func(dir, file string, environment map[string]string) (Running, error)

// pooled is a running provider and what the pool knows of it.
type pooled struct {
	Running
	key     key
	uses    int
	started time.Time
	// first is what it took after its first run, last after its last.
	first, last Size
	// outdated says that its credentials were replaced.
	outdated bool
	idle     clock.Timer // ends it; set while it is idle
}

// Pool lends running providers, each to one run at a time. Whatever fails in it leaves the run without: the engine then starts
// the provider itself.
type Pool struct {
	dir     string
	options Options
	start   Starter

	mu     sync.Mutex
	closed bool
	named  int // names folders
	// places is how many are lent, idle, or being started.
	places int
	lent   map[*pooled]struct{}
	idle   []*pooled
	ending sync.WaitGroup
}

// NewPool makes a pool that has its providers' folders in dir, which is its own.
func NewPool(dir string, o Options) *Pool { return NewPoolOf(dir, o, startConfined(o.Sandbox)) }

// NewPoolOf makes a pool of other plugins than Terraform's own.
func NewPoolOf(dir string, o Options, start Starter) *Pool {
	return &Pool{dir: dir, options: o.withDefaults(), lent: map[*pooled]struct{}{}, start: start}
}

// startConfined returns what starts a provider for a pool. That returns a nil interface with an error.
func startConfined(confined *sandbox.Sandbox) Starter {
	return func(dir, file string, environment map[string]string) (Running, error) {
		started, err := Start(dir, file, environment, confined)
		if err != nil {
			return nil, err
		}
		return started, nil
	}
}

// Use is what providers are lent for.
type Use struct {
	// Files are the plugins, by their providers' addresses.
	Files map[string]string
	// Environment is all that they see.
	Environment map[string]string
	// Owner names whose credentials are in the environment, such as a module and a Secret. Providers of one owner that have another environment
	// are ended: its credentials have changed. Those of different owners are never mixed. Empty where nothing is known.
	Owner string
}

// Lend returns the providers that can be had. The lease is never nil and may be empty.
func (p *Pool) Lend(ctx context.Context, use Use) *Lease {
	l := &Lease{pool: p, providers: map[string]*pooled{}}
	for address, file := range use.Files {
		found, err := p.take(ctx, file, use)
		if err != nil {
			p.options.Logger.Error(err, "no warm provider; the engine starts its own", "provider", filepath.Base(file))
		}
		if found != nil {
			l.providers[address] = found
		}
	}
	return l
}

// take returns an idle provider that responds, or a new one if there is room, or else nil.
func (p *Pool) take(ctx context.Context, file string, use Use) (*pooled, error) {
	wanted, err := keyOf(file, use)
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
		return p.startIn(dir, file, wanted, use.Environment)
	}
}

// responds reports whether a provider that was idle responds, and ends one that does not.
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

func (p *Pool) startIn(dir, file string, wanted key, environment map[string]string) (*pooled, error) {
	started, err := p.start(dir, file, environment)
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

// reserve returns an idle provider with the key, which is lent from then on, or else the folder for a new one, "" where there is no room.
func (p *Pool) reserve(wanted key) (*pooled, string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ""
	}
	p.outdate(wanted)
	// the one used last is the one whose memory is still there
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
		p.endIdle(0, "its place is taken by another")
	}
	if p.places >= p.options.Max {
		return nil, ""
	}
	p.places++
	p.named++
	return nil, filepath.Join(p.dir, strconv.Itoa(p.named))
}

// outdate ends the providers of the same owner with other credentials: now those that are idle, the others when they come back. The caller
// holds the lock.
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

// unfit says why a provider is not lent any more, "" where it is. The caller holds the lock.
func (p *Pool) unfit(one *pooled) string {
	switch {
	case one.Exited():
		return "its process has ended"
	case one.outdated:
		return "its credentials have changed"
	case one.uses >= p.options.Uses:
		return "it has served its number of runs"
	case p.options.Clock.Since(one.started) >= p.options.MaxAge:
		return "it is too old"
	}
	return one.leaks()
}

// What a provider may take beyond twice what it took after its first run, before it is taken for one that leaks.
const (
	leakedMemory = 64 << 20
	leakedFiles  = 128
)

// leaks says what a provider has not given back after its runs, "" for nothing.
func (one *pooled) leaks() string {
	switch {
	case one.last.Processes > 0:
		return "it has left processes"
	case one.last.Memory > 2*one.first.Memory+leakedMemory:
		return "its memory grows"
	case one.last.Files > 2*one.first.Files+leakedFiles:
		return "the number of its open files grows"
	}
	return ""
}

// forget takes an idle provider out of the list. The caller holds the lock.
func (p *Pool) forget(i int) {
	p.idle[i].idle.Stop()
	p.idle = slices.Delete(p.idle, i, i+1)
}

// endIdle ends an idle provider. The caller holds the lock.
func (p *Pool) endIdle(i int, reason string) {
	gone := p.idle[i]
	p.forget(i)
	p.endLater(gone, reason)
}

// endLater ends a provider that no run uses, without waiting. The caller holds the lock.
func (p *Pool) endLater(gone *pooled, reason string) {
	p.places--
	p.options.Logger.V(1).Info("ending a warm provider", "reason", reason, "runs", gone.uses)
	p.ending.Go(func() {
		if err := gone.End(); err != nil {
			p.options.Logger.Error(err, "ending a warm provider")
		}
	})
}

// giveBack makes a provider idle, or ends it where it is not to serve another run.
func (p *Pool) giveBack(back *pooled) {
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

// fitMemory ends idle providers, the one that was idle longest first, until the others take no more memory than they may. The caller holds
// the lock.
func (p *Pool) fitMemory() {
	var sum int64
	for _, one := range p.idle {
		sum += one.last.Memory
	}
	for sum > p.options.Memory {
		sum -= p.idle[0].last.Memory
		p.endIdle(0, "idle providers take too much memory")
	}
}

func (p *Pool) expire(old *pooled) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.idle, old); i >= 0 {
		p.idle = slices.Delete(p.idle, i, i+1) // its timer has ended
		p.endLater(old, "no run needed it for a while")
	}
}

// Close ends the idle providers and waits until they and those that were being ended are gone.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	for len(p.idle) > 0 {
		p.endIdle(len(p.idle)-1, "the pool is closed")
	}
	p.mu.Unlock()
	p.ending.Wait()
}

// Lease is the providers that a run has.
type Lease struct {
	pool      *Pool
	providers map[string]*pooled
}

// Reattach is what the engine needs to use the providers, by their addresses.
func (l *Lease) Reattach() tfexec.ReattachInfo {
	info := tfexec.ReattachInfo{}
	for address, provider := range l.providers {
		if engines, ok := provider.Running.(interface{ Reattach() tfexec.ReattachConfig }); ok {
			info[address] = engines.Reattach()
		}
	}
	return info
}

// Running returns the plugin that is lent under an address, nil where there is none.
func (l *Lease) Running(address string) Running {
	if found := l.providers[address]; found != nil {
		return found.Running
	}
	return nil
}

// GiveBack ends the lease of providers that are well. It may be called again.
func (l *Lease) GiveBack() {
	for address, provider := range l.providers {
		delete(l.providers, address)
		l.pool.giveBack(provider)
	}
}

// Discard ends the providers, and waits until they are gone: what a run began does not go on after it.
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
