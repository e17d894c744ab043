// Package preload reads many Secrets together that are about to be asked for one by one, and hands out each once, or their versions. It knows nothing of what
// is in them.
package preload

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// patience is how long who asks waits for the Secrets to be read.
	patience = 10 * time.Second
	// lifetime is how long they count, from when reading began.
	lifetime = 30 * time.Second
	page     = 500
)

// Options say what is read. All must be set but the Logger.
type Options struct {
	// Client reads the API server itself, never a cache.
	Client client.Client
	// Namespace and Labels select the Secrets.
	Namespace string
	Labels    map[string]string
	Clock     clock.Clock
	Logger    logr.Logger
}

// Secrets are what is read when this process begins to lead: each is then asked for soon, and a request for each would take the API server longer than all
// else. It is a manager.Runnable.
//
// What was read counts for half a minute, once for each Secret, and not for one that this process has changed, before or after.
type Secrets struct {
	options Options
	// done is closed when the Secrets were read.
	done chan struct{}

	mu sync.Mutex
	// read are those that were read and not asked for yet, changed those that do not count; both nil from when all are too old.
	read    map[types.NamespacedName]*corev1.Secret
	changed map[types.NamespacedName]struct{}
}

// New returns Secrets. From now on Take waits a while for Start.
func New(options Options) *Secrets {
	return &Secrets{
		options: options, done: make(chan struct{}),
		read: map[types.NamespacedName]*corev1.Secret{}, changed: map[types.NamespacedName]struct{}{},
	}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: what was read before this process leads, another may have changed since.
func (s *Secrets) NeedLeaderElection() bool { return true }

// Start reads the Secrets, and returns when they no longer count. What cannot be read now is left to who asks for it.
func (s *Secrets) Start(ctx context.Context) error {
	old := s.options.Clock.After(lifetime)
	if err := s.list(ctx); err != nil && ctx.Err() == nil {
		s.options.Logger.Info("Secrets were not read together; each is read when it is needed", "error", err.Error())
	}
	close(s.done)
	select {
	case <-ctx.Done():
	case <-old:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read, s.changed = nil, nil
	return nil
}

func (s *Secrets) list(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for next := ""; ; {
		some := &corev1.SecretList{}
		err := s.options.Client.List(ctx, some, client.InNamespace(s.options.Namespace), client.MatchingLabels(s.options.Labels), client.Limit(page), client.Continue(next))
		if err != nil {
			return err
		}
		s.keep(some.Items)
		if next = some.Continue; next == "" {
			return nil
		}
	}
}

func (s *Secrets) keep(some []corev1.Secret) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range some {
		name := client.ObjectKeyFromObject(&some[i])
		if _, changed := s.changed[name]; !changed {
			some[i].ManagedFields = nil
			s.read[name] = some[i].DeepCopy() // so that what was taken does not keep its page
		}
	}
}

// Take returns what was read of a Secret, the first time; nil for nothing. It waits until all were read. Nil Secrets have nothing.
func (s *Secrets) Take(ctx context.Context, name types.NamespacedName) *corev1.Secret {
	if s == nil || name.Namespace != s.options.Namespace {
		return nil
	}
	select {
	case <-s.done:
	case <-ctx.Done():
		return nil
	case <-s.options.Clock.After(patience):
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	secret := s.read[name]
	delete(s.read, name)
	return secret
}

// Changed drops what was read of a Secret, or is just being read: it is about to be changed.
func (s *Secrets) Changed(name types.NamespacedName) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.read, name)
	if s.changed != nil {
		s.changed[name] = struct{}{}
	}
}
