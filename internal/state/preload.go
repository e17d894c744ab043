package state

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// preloadPatience is how long a Get waits for the states to be read together.
	preloadPatience = 10 * time.Second
	// preloadLifetime is how long they count from when they were read.
	preloadLifetime = 30 * time.Second
)

// Preload reads the states of a namespace together when this process begins to lead: their Machines are then all reconciled at once, and a request for each
// would take the API server longer than all else. It is a manager.Runnable.
//
// What it has read serves the first Get of each state, if that is made soon and this process has done nothing with the state before. All others, and whatever
// takes the lock, read the API server.
type Preload struct {
	store     *Store
	namespace string
	logger    logr.Logger
	// done is closed when the states were read.
	done chan struct{}

	mu sync.Mutex
	// heads are those that were read and not asked for yet, used what was done with states before they were read; nil from when they are too old.
	heads map[types.NamespacedName]*corev1.Secret
	used  map[types.NamespacedName]struct{}
}

// NewPreload returns a Preload. From now on the first Get of each state waits a while for it.
func NewPreload(store *Store, namespace string, logger logr.Logger) *Preload {
	p := &Preload{
		store: store, namespace: namespace, logger: logger, done: make(chan struct{}),
		heads: map[types.NamespacedName]*corev1.Secret{}, used: map[types.NamespacedName]struct{}{},
	}
	store.preload.Store(p)
	return p
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: what was read before this process leads, another may have changed since.
func (p *Preload) NeedLeaderElection() bool { return true }

// Start reads the states. What cannot be read now is read for each Machine.
func (p *Preload) Start(ctx context.Context) error {
	began := p.store.options.Clock.Now()
	if err := p.read(ctx); err != nil && ctx.Err() == nil {
		p.logger.Info("The states were not read together; each is read when its Machine is reconciled", "error", err.Error())
	}
	close(p.done)
	select {
	case <-ctx.Done():
	case <-p.store.options.Clock.After(preloadLifetime - p.store.options.Clock.Since(began)):
	}
	p.store.preload.CompareAndSwap(p, nil)
	return nil
}

func (p *Preload) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, preloadPatience)
	defer cancel()
	options := &client.ListOptions{Namespace: p.namespace, Limit: listPage}
	client.MatchingLabels{labelState: "true", LabelRole: RoleHead}.ApplyToList(options)
	for {
		page := &corev1.SecretList{}
		if err := p.store.client.List(ctx, page, options); err != nil {
			return err
		}
		p.keep(page.Items)
		if options.Continue = page.Continue; options.Continue == "" {
			return nil
		}
	}
}

func (p *Preload) keep(heads []corev1.Secret) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range heads {
		name := types.NamespacedName{Namespace: heads[i].Namespace, Name: heads[i].Name}
		if _, used := p.used[name]; !used {
			heads[i].ManagedFields = nil
			p.heads[name] = &heads[i]
		}
	}
}

// take returns what was read of a state, once; nil for nothing.
func (p *Preload) take(ctx context.Context, name types.NamespacedName) *corev1.Secret {
	select {
	case <-p.done:
	case <-ctx.Done():
		return nil
	case <-p.store.options.Clock.After(preloadPatience):
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	head := p.heads[name]
	delete(p.heads, name)
	return head
}

// forget drops what was read of a state, or is going to be: it is about to be changed.
func (p *Preload) forget(name types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.heads, name)
	p.used[name] = struct{}{}
}

// preloaded returns what a Preload has read of a state that is asked for the first time; nil for nothing.
func (s *Store) preloaded(ctx context.Context, key Key) *view {
	p := s.preload.Load()
	if p == nil || p.namespace != key.Namespace {
		return nil
	}
	head := p.take(ctx, key.object())
	if head == nil {
		return nil
	}
	seen, err := s.resolve(ctx, key, head)
	if err != nil {
		return nil // it may have been changed just then: whoever reads it now says what is wrong
	}
	return seen
}

// changing drops what a Preload has read of a state that is about to be changed.
func (s *Store) changing(name types.NamespacedName) {
	if p := s.preload.Load(); p != nil {
		p.forget(name)
	}
}
