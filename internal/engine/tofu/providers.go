package tofu

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-exec/tfexec"

	"github.com/machine-iac/machine-iac-operator/internal/engine/provider"
	"github.com/machine-iac/machine-iac-operator/internal/engine/workdir"
)

// providersOf returns the files of the provider plugins that an initialized module uses, by
// provider address.
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
		files, err := filepath.Glob(filepath.Join(packageDir(dir, address, selection.Version), "terraform-provider-"+path.Base(address)+"*"))
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

// packageDir returns where the engine has a provider for a module.
func packageDir(module, address, version string) string {
	return filepath.Join(module, dataDir, "providers", filepath.FromSlash(address), version, runtime.GOOS+"_"+runtime.GOARCH)
}

// describeProviders lists the files of the providers that an initialized module uses, with their
// SHA-256.
func (e *Engine) describeProviders(module string) (string, error) {
	files, err := providersOf(module)
	if err != nil {
		return "", err
	}
	var described []string
	for _, address := range slices.Sorted(maps.Keys(files)) {
		digest, err := e.mirrored.Digest(files[address])
		if err != nil {
			return "", err
		}
		described = append(described, filepath.Base(files[address])+" "+digest)
	}
	return strings.Join(described, ", "), nil
}

// makePool returns the engine's pool, or nil if providers are not kept running.
func (e *Engine) makePool() (*provider.Pool, error) {
	if _, err := workdir.KillProcesses(e.dir.providers()); err != nil {
		return nil, fmt.Errorf("killing the providers of a predecessor: %w", err)
	}
	if err := os.RemoveAll(e.dir.providers()); err != nil {
		return nil, fmt.Errorf("cleaning the work folder: %w", err)
	}
	if e.options.Warm.Max <= 0 {
		return nil, nil
	}
	options := e.options.Warm
	options.Logger, options.Sandbox = e.options.Logger, e.options.Sandbox
	return provider.NewPool(e.dir.providers(), options), nil
}

// providers returns the warm providers for the next operation, or nil.
func (f *Workspace) providers(ctx context.Context) tfexec.ReattachInfo {
	if len(f.run.Providers) > 0 {
		return f.run.Providers
	}
	if f.engine.pool == nil {
		return nil
	}
	if f.lease == nil {
		files, err := providersOf(f.module)
		f.plugins = len(files)
		if err != nil {
			f.engine.options.Logger.Error(err, "No warm providers; the engine starts its own")
		}
		use := provider.Use{Files: files, Environment: f.engine.providerEnvironment(f.run.Environment),
			Secrets: f.run.Files, Admit: f.engine.options.Sandbox.Admits(f.dir)}
		if f.run.Credentials != "" {
			use.Owner = f.run.Module + " " + f.run.Credentials
		}
		f.lease = f.engine.pool.Lend(ctx, use)
	}
	if info := f.lease.Reattach(); len(info) > 0 {
		return info
	}
	return nil
}

// endProviders kills the warm providers of a failed run: a call may still be in progress, or they
// may be the cause.
func (f *Workspace) endProviders() {
	if f.lease == nil {
		return
	}
	if err := f.lease.Discard(); err != nil {
		f.engine.options.Logger.Error(err, "Killing the warm providers of a failed run", "folder", f.run.ID)
	}
}
