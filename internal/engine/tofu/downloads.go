package tofu

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/mod/sumdb/dirhash"
)

// downloaded returns the folder of an unpacked provider, by the checksum that lock files have.
func (d workDir) downloaded(checksum string) string {
	return filepath.Join(d.downloads(), strings.NewReplacer(":", "-", "/", "_").Replace(checksum))
}

// awaitDownloads waits while a module with one of the same providers is initialized, which may be downloading it.
func (e *Engine) awaitDownloads(files fs.FS) (done func()) {
	var held []*sync.Mutex
	if e.options.AllowDirect {
		content, _ := fs.ReadFile(files, lockFile)
		locked, _ := parseLockFile(content) // writeModule returns the errors
		for _, address := range slices.Sorted(maps.Keys(locked)) {
			entry, _ := e.downloading.LoadOrStore(address, &sync.Mutex{})
			one := entry.(*sync.Mutex)
			one.Lock()
			held = append(held, one)
		}
	}
	return func() {
		for _, one := range held {
			one.Unlock()
		}
	}
}

// linkDownloads links a module to the providers in the work folder that its lock file has the checksums of. The
// engine verifies them instead of downloading them.
func (e *Engine) linkDownloads(module string, locked selections) error {
	for address, selected := range locked {
		at := slices.IndexFunc(selected.Hashes, func(hash string) bool {
			_, err := os.Stat(e.dir.downloaded(hash))
			return strings.HasPrefix(hash, "h1:") && err == nil
		})
		if at < 0 {
			continue
		}
		link := packageDir(module, address, selected.Version)
		err := os.MkdirAll(filepath.Dir(link), 0o700)
		if err == nil {
			err = os.Symlink(e.dir.downloaded(selected.Hashes[at]), link)
		}
		if err != nil {
			return fmt.Errorf("linking the provider %s: %w", address, err)
		}
	}
	return nil
}

// keepDownloads moves the providers that the engine has unpacked for a module to where others find them, once each.
func (e *Engine) keepDownloads(module string) error {
	found, err := filepath.Glob(packageDir(module, "*/*/*", "*"))
	if err != nil {
		return fmt.Errorf("finding the module's providers: %w", err)
	}
	for _, unpacked := range found {
		if info, err := os.Lstat(unpacked); err != nil || !info.IsDir() {
			continue // a link to the mirror, or to what is kept
		}
		checksum, err := dirhash.HashDir(unpacked, "", dirhash.Hash1)
		if err != nil {
			return fmt.Errorf("reading a provider: %w", err)
		}
		kept := e.dir.downloaded(checksum)
		if err = os.Rename(unpacked, kept); errors.Is(err, fs.ErrExist) {
			err = os.RemoveAll(unpacked)
		}
		if err == nil {
			err = os.Symlink(kept, unpacked)
		}
		if err != nil {
			return fmt.Errorf("keeping a provider: %w", err)
		}
	}
	return nil
}
