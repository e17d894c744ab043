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
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// Basis records the versions of the inputs of a choice that no event reports: the state, the
// Machine's Secrets, and the facts about the cluster.
type Basis struct {
	state   string
	secrets [2]version
	cluster *module.Cluster
}

// version is the resource version of a Secret, or empty.
type version struct{ name, version string }

func versionsOf(credentials, userData *corev1.Secret) (versions [2]version) {
	for i, secret := range []*corev1.Secret{credentials, userData} {
		if secret != nil {
			versions[i] = version{secret.Name, secret.ResourceVersion}
		}
	}
	return versions
}

// Basis returns the basis of a choice for an update, given its facts. It returns nil if more than
// one module was considered, or if a module is missing.
func (c Choice) Basis(f *lifecycle.Facts) *Basis {
	if c.State == nil || f.Version == "" || c.Withheld != nil || c.Pinned != nil || c.PinnedErr != nil ||
		c.State.ModuleMissing != "" {
		return nil
	}
	return &Basis{state: f.Version, secrets: c.State.secrets, cluster: c.State.cluster}
}

// Unchanged reports whether a choice for an unchanged Machine would have the same inputs. It is
// much cheaper than the choice if asked for many Machines at once, and false if unknown. It may
// miss changes of the last ten seconds.
func (r *Reader) Unchanged(ctx context.Context, machine *machinev1beta1.Machine, b *Basis) bool {
	if !r.states.Unchanged(ctx, state.KeyFor(machine.Namespace, machine.UID), b.state) {
		return false
	}
	for _, read := range b.secrets {
		if read.name != "" && !r.stillHas(ctx, types.NamespacedName{Namespace: machine.Namespace, Name: read.name},
			read.version) {
			return false
		}
	}
	if b.cluster == nil {
		return true
	}
	known, err := r.cluster.Cluster(ctx)
	return err == nil && (known == b.cluster || reflect.DeepEqual(known, b.cluster))
}

// Bases holds the bases of settled Machines by UID. The zero value is empty.
type Bases struct {
	mu    sync.Mutex
	byUID map[types.UID]keptBasis
}

type keptBasis struct {
	*Basis
	until time.Time
}

// Keep stores the basis of a Machine until a time; nil drops it.
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

// Kept returns the stored basis of a Machine and its expiry, or nil.
func (b *Bases) Kept(uid types.UID) (basis *Basis, until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	kept := b.byUID[uid]
	return kept.Basis, kept.until
}
