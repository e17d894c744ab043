package state

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// patience is how long Take waits for Start to read the Secrets.
	patience = 10 * time.Second
	// lifetime is how long preloaded Secrets are valid, from the start of reading.
	lifetime = 30 * time.Second
	// maxBytes bounds the memory for Secrets: five thousand heads with usual states, or a thousand with encrypted ones.
	maxBytes = 128 << 20
	// page bounds a list of Secrets, of at most a mebibyte each. Versions have a few hundred bytes each.
	page, versionsPage = 100, 500
)

// preloadOptions configure preloadedSecrets. All but Logger are required.
type preloadOptions struct {
	// Client reads the API server without a cache.
	Client client.Client
	// Namespace and Labels select the Secrets.
	Namespace string
	Labels    map[string]string
	Clock     clock.Clock
	Logger    logr.Logger
}

// preloadedSecrets reads all Secrets when this process becomes leader. Each is soon needed, and single requests would
// take the API server longer than everything else. It is a manager.Runnable.
//
// Each Secret is served once, for half a minute, and not if this process has changed it before or after. Secrets that
// do not fit the memory limit are not preloaded.
type preloadedSecrets struct {
	options preloadOptions
	// done is closed when the Secrets were read.
	done chan struct{}

	mu sync.Mutex
	// read are Secrets that were not taken yet; changed names invalid ones. Both are nil after lifetime.
	read    map[types.NamespacedName]*corev1.Secret
	changed map[types.NamespacedName]struct{}
	// bytes is the total size of read.
	bytes int
}

// newPreload returns preloadedSecrets. From now on, Take waits for Start.
func newPreload(options preloadOptions) *preloadedSecrets {
	return &preloadedSecrets{
		options: options, done: make(chan struct{}),
		read: map[types.NamespacedName]*corev1.Secret{}, changed: map[types.NamespacedName]struct{}{},
	}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable. Before this process leads, another may still write.
func (s *preloadedSecrets) NeedLeaderElection() bool { return true }

// Start reads the Secrets, and returns when they expire. It skips those that it cannot read.
func (s *preloadedSecrets) Start(ctx context.Context) error {
	old := s.options.Clock.After(lifetime)
	if err := s.list(ctx); err != nil && ctx.Err() == nil {
		s.options.Logger.Info("Not all Secrets were read together; the others are read when they are needed", "error",
			err.Error())
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

func (s *preloadedSecrets) list(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for next := ""; ; {
		some := &corev1.SecretList{}
		err := s.options.Client.List(ctx, some, client.InNamespace(s.options.Namespace),
			client.MatchingLabels(s.options.Labels), client.Limit(page), client.Continue(next))
		if err != nil {
			return err
		}
		if !s.keep(some.Items) {
			return fmt.Errorf("they have more than %d MiB", maxBytes>>20)
		}
		if next = some.Continue; next == "" {
			return nil
		}
	}
}

// keep stores Secrets and reports whether all fit.
func (s *preloadedSecrets) keep(some []corev1.Secret) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range some {
		name := client.ObjectKeyFromObject(&some[i])
		if _, changed := s.changed[name]; changed {
			continue
		}
		if s.bytes += sizeOf(&some[i]); s.bytes > maxBytes {
			return false
		}
		some[i].ManagedFields = nil
		s.read[name] = some[i].DeepCopy() // a copy: a Secret that was taken must not retain its page
	}
	return true
}

// sizeOf estimates a Secret's size in memory.
func sizeOf(secret *corev1.Secret) int {
	const others = 1 << 10 // labels, names and times
	size := others
	for name, value := range secret.Data {
		size += len(name) + len(value)
	}
	for name, value := range secret.Annotations {
		size += len(name) + len(value)
	}
	return size
}

// Take waits until all Secrets were read, and returns the named one on the first call, or nil. A nil receiver has none.
func (s *preloadedSecrets) Take(ctx context.Context, name types.NamespacedName) *corev1.Secret {
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

// Changed invalidates a Secret that is about to be changed, even if it is being read.
func (s *preloadedSecrets) Changed(name types.NamespacedName) {
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
