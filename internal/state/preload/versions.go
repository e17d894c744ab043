package preload

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

// versionsLifetime is how long a list of versions counts, from when it began.
const versionsLifetime = 10 * time.Second

// Versions are the resource versions of Secrets that are asked about together, as a regular reconcile of all objects does: a list of their metadata takes a
// small part of what reading each of them takes.
type Versions struct {
	options Options

	mu sync.Mutex
	// at is when the last list began, err why it failed. of has what it found.
	at  time.Time
	err error
	of  map[string]string
}

// NewVersions returns Versions that have not been listed.
func NewVersions(options Options) *Versions { return &Versions{options: options} }

// Of returns the resource version that a Secret had ten seconds ago at most; empty where there was none. Who asks first waits for the list, and the others with
// it; one that failed is not repeated before its time is over. Nil Versions know nothing.
func (v *Versions) Of(ctx context.Context, name types.NamespacedName) (string, error) {
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

// list is not ended by who waits for it: others do, too.
func (v *Versions) list(ctx context.Context) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	versions := map[string]string{}
	for next := ""; ; {
		some := &metav1.PartialObjectMetadataList{}
		some.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
		err := v.options.Client.List(ctx, some, client.InNamespace(v.options.Namespace), client.MatchingLabels(v.options.Labels), client.Limit(page), client.Continue(next))
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
