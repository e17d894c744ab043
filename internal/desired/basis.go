package desired

import (
	"context"
	"reflect"
	"sync"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/module/platform"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// Basis is what a choice for an update was made from and no event reports, in the versions that it had: the state, the Secrets that the Machine names, and
// what is known of the cluster.
type Basis struct {
	state   string
	secrets [2]version
	cluster *platform.Cluster
}

// version is the resource version of a Secret; empty for none.
type version struct{ name, version string }

func versionsOf(credentials, userData *corev1.Secret) (versions [2]version) {
	for i, secret := range []*corev1.Secret{credentials, userData} {
		if secret != nil {
			versions[i] = version{secret.Name, secret.ResourceVersion}
		}
	}
	return versions
}

// Basis returns what a choice for an update was made from, with these facts. It is nil where more than one module was considered, or one that is missing.
func (c Choice) Basis(f *lifecycle.Facts) *Basis {
	if c.State == nil || f.Version == "" || c.Withheld != nil || c.Pinned != nil || c.PinnedErr != nil || c.State.ModuleMissing != "" {
		return nil
	}
	return &Basis{state: f.Version, secrets: c.State.secrets, cluster: c.State.cluster}
}

// Unchanged reports whether a choice for the Machine as it was would be made from the same. It costs a small part of making it where many Machines are asked
// about together, and is false where it cannot be found out. Changes of the last ten seconds may not be noticed.
func (r *Reader) Unchanged(ctx context.Context, machine *machinev1beta1.Machine, b *Basis) bool {
	if !r.states.Unchanged(ctx, state.KeyFor(machine.Namespace, machine.UID), b.state) {
		return false
	}
	for _, read := range b.secrets {
		if read.name != "" && !r.stillHas(ctx, types.NamespacedName{Namespace: machine.Namespace, Name: read.name}, read.version) {
			return false
		}
	}
	if b.cluster == nil {
		return true
	}
	known, err := r.cluster.Cluster(ctx)
	return err == nil && (known == b.cluster || reflect.DeepEqual(known, b.cluster))
}

// Bases are those of Machines that were found settled, by their UIDs. The zero value has none.
type Bases struct {
	mu    sync.Mutex
	byUID map[types.UID]keptBasis
}

type keptBasis struct {
	*Basis
	until time.Time
}

// Keep keeps the basis of a Machine until a time; nil drops what was kept.
func (b *Bases) Keep(uid types.UID, basis *Basis, until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if basis == nil {
		delete(b.byUID, uid)
		return
	}
	if b.byUID == nil {
		b.byUID = map[types.UID]keptBasis{}
	}
	b.byUID[uid] = keptBasis{basis, until}
}

// Kept returns the basis of a Machine, and until when it counts; nil for none.
func (b *Bases) Kept(uid types.UID) (basis *Basis, until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	kept := b.byUID[uid]
	return kept.Basis, kept.until
}
