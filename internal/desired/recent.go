package desired

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// recently is how long a read of a Secret stays valid for checks that only detect changes.
const recently = 10 * time.Second

// recentReads are the versions that the last reads of Secrets found. A periodic reconcile asks for
// the same few for thousands of Machines. The zero value is empty.
type recentReads struct {
	mu sync.Mutex
	// since is when the first of them was read. They expire together.
	since time.Time
	of    map[types.NamespacedName]string
}

// get returns the version of a Secret that was read recently, or "".
func (v *recentReads) get(name types.NamespacedName, now time.Time) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if now.Sub(v.since) >= recently {
		return ""
	}
	return v.of[name]
}

// keep stores the result of a read that began at that time.
func (v *recentReads) keep(name types.NamespacedName, version string, began time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.of == nil || began.Sub(v.since) >= recently {
		v.since, v.of = began, map[types.NamespacedName]string{}
	}
	if !began.Before(v.since) {
		v.of[name] = version
	}
}

// read reads a Secret.
func (r *Reader) read(ctx context.Context, name types.NamespacedName) (*corev1.Secret, error) {
	began := r.clock.Now()
	secret := &corev1.Secret{}
	if err := r.client.Get(ctx, name, secret); err != nil {
		return nil, err
	}
	r.recent.keep(name, secret.ResourceVersion, began)
	return secret, nil
}

// stillHas reports whether a Secret has that version, or had it up to ten seconds ago.
func (r *Reader) stillHas(ctx context.Context, name types.NamespacedName, version string) bool {
	if r.recent.get(name, r.clock.Now()) == version {
		return true
	}
	secret, err := r.read(ctx, name)
	return err == nil && secret.ResourceVersion == version
}
