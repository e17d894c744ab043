package state

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// versionsLifetime is how long a list of versions is valid, from its start.
const versionsLifetime = 10 * time.Second

// secretVersions caches the resource versions of all Secrets, for periodic reconciles of all objects: a list of
// metadata costs a small part of reading each Secret.
type secretVersions struct {
	options preloadOptions

	mu sync.Mutex
	// at is the start of the last list, err its error, and of its result.
	at  time.Time
	err error
	of  map[string]string
}

func newSecretVersions(options preloadOptions) *secretVersions {
	return &secretVersions{options: options}
}

// Of returns a Secret's resource version of at most ten seconds ago, or "" if there was no Secret. The first caller
// lists, and others wait for it. A failed list is not repeated before it expires. A nil receiver returns "".
func (v *secretVersions) Of(ctx context.Context, name types.NamespacedName) (string, error) {
	if v == nil || name.Namespace != v.options.Namespace {
		return "", nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if now := v.options.Clock.Now(); v.at.IsZero() || now.Sub(v.at) >= versionsLifetime {
		v.at = now
		v.of, v.err = v.list(context.WithoutCancel(ctx))
	}
	return v.of[name.Name], v.err
}

// list ignores the caller's cancellation, because other callers wait for it.
func (v *secretVersions) list(ctx context.Context) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	versions := map[string]string{}
	for next := ""; ; {
		some := &metav1.PartialObjectMetadataList{}
		some.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
		err := v.options.Client.List(ctx, some, client.InNamespace(v.options.Namespace),
			client.MatchingLabels(v.options.Labels), client.Limit(versionsPage), client.Continue(next))
		if err != nil {
			return nil, fmt.Errorf("listing the versions of Secrets: %w", err)
		}
		for i := range some.Items {
			versions[some.Items[i].Name] = some.Items[i].ResourceVersion
		}
		if next = some.Continue; next == "" {
			return versions, nil
		}
	}
}
