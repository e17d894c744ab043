package desired

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// recently is how long the version of a Secret that was read counts where Machines are only asked whether anything has changed.
const recently = 10 * time.Second

// recentVersions are the resource versions of Secrets that were read a moment ago: a regular reconcile of all asks about the same few Secrets for
// thousands of Machines. The zero value has none.
type recentVersions struct {
	mu sync.Mutex
	// since is when the first of these was read. All are forgotten together.
	since time.Time
	of    map[types.NamespacedName]string
}

// has reports whether a Secret was recently found with that version.
func (v *recentVersions) has(name types.NamespacedName, version string, now time.Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return now.Sub(v.since) < recently && v.of[name] == version
}

// keep keeps the version that a read found which began at that time.
func (v *recentVersions) keep(name types.NamespacedName, version string, began time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.of == nil || began.Sub(v.since) >= recently {
		v.since, v.of = began, map[types.NamespacedName]string{}
	}
	if !began.Before(v.since) {
		v.of[name] = version
	}
}

// stillHas reports whether a Secret has that version, or had it a moment ago.
func (r *Reader) stillHas(ctx context.Context, name types.NamespacedName, version string) bool {
	now := r.clock.Now()
	if r.recent.has(name, version, now) {
		return true
	}
	secret, err := r.shared.get(ctx, name, r.readSecret)
	if err != nil {
		return false
	}
	r.recent.keep(name, secret.ResourceVersion, now)
	return secret.ResourceVersion == version
}
