package module

import (
	"context"
	"os"
	"path/filepath"
)

// bareFile contains the part of the module that a destroy needs.
const bareFile = "machine-iac-providers.tf"

// destroy validates the part of the module that a destroy needs, without the module's own HCL. A
// destroy then needs only the place from the providerSpec, no user data, and no data sources.
func (w *work) destroy(ctx context.Context) error {
	names, err := filepath.Glob(filepath.Join(w.dir, "*.tf"))
	if err != nil {
		return err
	}
	const hidden = ".aside"
	for _, name := range names {
		if err := os.Rename(name, name+hidden); err != nil {
			return err
		}
	}
	bare := filepath.Join(w.dir, bareFile)
	if err := os.WriteFile(bare, w.module.loaded.Bare().HCL, 0o600); err != nil {
		return err
	}
	if err := w.validateWith(ctx, search{}); err != nil {
		return err
	}
	for _, name := range names {
		if err := os.Rename(name+hidden, name); err != nil {
			return err
		}
	}
	return os.Remove(bare)
}
