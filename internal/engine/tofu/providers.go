package tofu

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"

	"github.com/machine-iac/machine-iac-operator/internal/engine/provider"
	"github.com/machine-iac/machine-iac-operator/internal/engine/workdir"
)

// providersOf returns the files of the provider plugins that an initialised module uses, by the providers' addresses.
func providersOf(module string) (map[string]string, error) {
	dir := filepath.Join(module, moduleDir)
	content, err := os.ReadFile(filepath.Join(dir, lockFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("finding the module's providers: %w", err)
	}
	selected, err := parseLockFile(content)
	if err != nil {
		return nil, fmt.Errorf("finding the module's providers: %w", err)
	}
	found := map[string]string{}
	for address, selection := range selected {
		platform := filepath.Join(dir, dataDir, "providers", filepath.FromSlash(address), selection.Version, runtime.GOOS+"_"+runtime.GOARCH)
		files, err := filepath.Glob(filepath.Join(platform, "terraform-provider-"+path.Base(address)+"*"))
		if err != nil {
			return nil, fmt.Errorf("finding the provider %s: %w", address, err)
		}
		if len(files) == 0 {
			continue // selected, but not used by the module
		}
		if found[address], err = filepath.EvalSymlinks(files[0]); err != nil {
			return nil, fmt.Errorf("finding the provider %s: %w", address, err)
		}
	}
	return found, nil
}

// makePool returns the engine's pool, nil where providers are not kept.
func (e *Engine) makePool() (*provider.Pool, error) {
	if e.options.Warm.Max <= 0 {
		return nil, nil
	}
	if _, err := workdir.KillProcesses(e.dir.providers()); err != nil {
		return nil, fmt.Errorf("ending the providers of a predecessor: %w", err)
	}
	if err := os.RemoveAll(e.dir.providers()); err != nil {
		return nil, fmt.Errorf("cleaning the work folder: %w", err)
	}
	options := e.options.Warm
	options.Logger, options.Sandbox = e.options.Logger, e.options.Sandbox
	return provider.NewPool(e.dir.providers(), options), nil
}
