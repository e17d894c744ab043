package desired

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// recently is how long a read of a Secret stays valid for checks that only detect changes.
	recently = 10 * time.Second
	// maxRecentSecrets bounds the Secrets kept whole rather than by version. Few are shared by many
	// Machines.
	maxRecentSecrets = 50
)

// recentReads caches the last reads of Secrets. The first and each periodic reconcile read the same
// few for thousands of Machines. The zero value is empty.
type recentReads struct {
	mu sync.Mutex
	// since is when the first of them was read. They expire together.
	since time.Time
	of    map[types.NamespacedName]recentRead
	whole int
}

// recentRead is a Secret or only its version.
type recentRead struct {
	version string
	secret  *corev1.Secret
}

// get returns a recent read of a Secret, or zero.
func (v *recentReads) get(name types.NamespacedName, now time.Time) recentRead {
	v.mu.Lock()
	defer v.mu.Unlock()
	if now.Sub(v.since) >= recently {
		return recentRead{}
	}
	return v.of[name]
}

// keep stores the result of a read that began at that time.
func (v *recentReads) keep(name types.NamespacedName, secret *corev1.Secret, began time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.of == nil || began.Sub(v.since) >= recently {
		v.since, v.of, v.whole = began, map[types.NamespacedName]recentRead{}, 0
	}
	if began.Before(v.since) {
		return
	}
	read := recentRead{version: secret.ResourceVersion}
	if before := v.of[name]; before.secret != nil {
		read.secret = secret
	} else if v.whole < maxRecentSecrets {
		read.secret = secret
		v.whole++
	}
	v.of[name] = read
}

// read reads a Secret, which is shared: do not modify it. If recent is set, it may be up to ten
// seconds old.
func (r *Reader) read(ctx context.Context, name types.NamespacedName, recent bool) (*corev1.Secret, error) {
	now := r.clock.Now()
	if recent {
		if read := r.recent.get(name, now); read.secret != nil {
			return read.secret, nil
		}
	}
	secret, err := r.shared.get(ctx, name, r.readSecret)
	if err != nil {
		return nil, err
	}
	r.recent.keep(name, secret, now)
	return secret, nil
}

// stillHas reports whether a Secret has that version, or had it up to ten seconds ago.
func (r *Reader) stillHas(ctx context.Context, name types.NamespacedName, version string) bool {
	if r.recent.get(name, r.clock.Now()).version == version {
		return true
	}
	secret, err := r.read(ctx, name, false)
	return err == nil && secret.ResourceVersion == version
}
