package recovery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

// keptStates holds the stored unsaved states by the UID of their Machine. Listing Secrets for every
// destroy would not scale with the number of Machines.
type keptStates struct {
	mu    sync.Mutex
	names map[types.UID][]types.NamespacedName
}

func (k *keptStates) of(uid types.UID) []types.NamespacedName {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.names[uid]
}

func (k *keptStates) add(uid types.UID, name types.NamespacedName) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.names == nil {
		k.names = map[types.UID][]types.NamespacedName{}
	}
	if !slices.Contains(k.names[uid], name) {
		k.names[uid] = append(k.names[uid], name)
	}
}

func (k *keptStates) remove(uid types.UID, name types.NamespacedName) {
	k.mu.Lock()
	defer k.mu.Unlock()
	rest := slices.DeleteFunc(slices.Clone(k.names[uid]), func(one types.NamespacedName) bool { return one == name })
	if len(rest) == 0 {
		delete(k.names, uid)
		return
	}
	k.names[uid] = rest
}

// UnsavedStates returns the unsaved states that list resources missing from all other states.
// Unsaved states that no longer do are dropped.
func (r *Recovery) UnsavedStates(ctx context.Context, namespace string) ([]state.Orphan, error) {
	all, err := r.options.Store.Orphans(ctx, namespace)
	if err != nil {
		return nil, err
	}
	nameOf := func(one state.Orphan) types.NamespacedName {
		return types.NamespacedName{Namespace: one.Namespace, Name: one.Name}
	}
	for _, one := range all {
		r.kept.add(one.MachineUID, nameOf(one))
	}
	for _, one := range all {
		// Without a state of its Machine, it may be the only record.
		if stored, err := r.options.Store.Get(ctx, one.Key); err == nil && stored.Raw != nil {
			r.DropKnown(ctx, one.MachineUID, stored.Raw)
		}
	}
	return slices.DeleteFunc(all, func(one state.Orphan) bool {
		return !slices.Contains(r.kept.of(one.MachineUID), nameOf(one))
	}), nil
}

// DropKnown drops a Machine's unsaved states whose resources are now in its own state, raw, because
// a lookup has found them. Those that cannot be read or dropped stay for the next time.
func (r *Recovery) DropKnown(ctx context.Context, uid types.UID, raw []byte) {
	for _, name := range r.kept.of(uid) {
		known, err := r.dropIfKnown(ctx, name, raw)
		switch {
		case err != nil:
			r.options.Logger.Error(err, "Cannot compare an unsaved state with its Machine's state", "secret", name.String())
		case known:
			r.kept.remove(uid, name)
			r.options.Logger.Info("Dropping an unsaved state: its Machine's state now has all its resources", "secret",
				name.String())
		}
	}
}

func (r *Recovery) dropIfKnown(ctx context.Context, name types.NamespacedName, raw []byte) (known bool, err error) {
	kept, _, err := r.options.Store.ReadOrphan(ctx, name)
	if errors.Is(err, state.ErrNotFound) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	compared, err := statefile.Compare(raw, kept)
	if err != nil || len(compared.Missing) > 0 {
		return false, err
	}
	if err := r.options.Store.DeleteOrphan(ctx, name); err != nil {
		return false, fmt.Errorf("dropping the unsaved state: %w", err)
	}
	return true, nil
}
