package state

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// versionsLifetime is how long a list of versions is valid, from its start.
const versionsLifetime = 10 * time.Second

// headVersions caches the resource versions of all heads, for periodic reconciles of all Machines: a list of metadata
// costs a small part of reading each head. The zero value is empty.
type headVersions struct {
	mu sync.Mutex
	// at is the start of the last list; err and of are its result: versions by head name.
	at  time.Time
	err error
	of  map[string]string
}

// versionOf returns a head's resource version of at most ten seconds ago, or "" if there was no head. The first caller
// lists, and others wait for it, so that its cancellation is ignored. A failed list is repeated after ten seconds.
func (s *Store) versionOf(ctx context.Context, key Key) (string, error) {
	v := &s.versions
	v.mu.Lock()
	defer v.mu.Unlock()
	if now := s.options.Clock.Now(); v.at.IsZero() || now.Sub(v.at) >= versionsLifetime {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), versionsLifetime)
		defer cancel()
		v.at, v.of = now, map[string]string{}
		v.err = s.list(ctx, s.options.Namespace, client.MatchingLabels{labelState: "true", LabelRole: RoleHead},
			func(object *metav1.ObjectMeta) { v.of[object.Name] = object.ResourceVersion })
		if v.err != nil {
			v.at = s.options.Clock.Now() // it may have been retried for as long as a list is valid
		}
	}
	return v.of[key.object().Name], v.err
}
