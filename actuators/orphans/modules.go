package orphans

import (
	"context"
	"errors"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/store"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// tidyModules stores the modules that states need, including those of states older than the module
// store, and removes others.
func (o *Orphans) tidyModules(ctx context.Context, heads []state.Head) error {
	needed, current, held := map[string]bool{}, map[string]*module.Module{}, 0
	for _, loaded := range o.Catalog.Modules() {
		current[loaded.Digest()] = loaded
	}
	for _, head := range heads {
		digest := store.DigestOf(record.ModuleIn(head.Meta))
		needed[digest] = true
		if digest != "" && current[digest] == nil && head.Managed > 0 {
			held++
		}
	}
	o.held.Set(float64(held))
	removed, err := o.Modules.Tidy(ctx, o.Namespace, func(digest string) bool {
		return needed[digest] ||
			current[digest] != nil
	})
	for _, digest := range removed {
		o.Logger.Info("Removing a stored module that no state needs", "digest", digest)
	}
	for digest, loaded := range current {
		if needed[digest] {
			err = errors.Join(err, o.Modules.Keep(ctx, o.Namespace, loaded))
		}
	}
	return err
}
