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

// isKept reports whether the work folder has a provider with a checksum, damaged or not.
func (e *Engine) isKept(checksum string) bool {
	_, err := os.Lstat(e.dir.downloaded(checksum))
	return strings.HasPrefix(checksum, "h1:") && err == nil
}

// verify reports whether the work folder has a provider with a checksum. It hashes each folder once, as a crash or
// another process may have damaged it, and removes one with other content. The caller holds keeping.
func (e *Engine) verify(checksum string) bool {
	if !e.isKept(checksum) || e.verified[checksum] {
		return e.isKept(checksum)
	}
	folder := e.dir.downloaded(checksum)
	found, err := dirhash.HashDir(folder, "", dirhash.Hash1)
	if err == nil && found == checksum {
		e.verified[checksum] = true
		return true
	}
	e.options.Logger.Error(errors.Join(err, os.RemoveAll(folder)), "Removed a damaged provider", "folder", folder)
	return false
}

// awaitDownloads waits while a module with one of the same providers is initialized, which may be downloading it. It
// does not wait for those that the work folder has.
func (e *Engine) awaitDownloads(files fs.FS) (done func()) {
	var held []*sync.Mutex
	if e.options.AllowDirect {
		content, _ := fs.ReadFile(files, lockFile)
		locked, _ := parseLockFile(content) // writeModule returns the errors
		for _, address := range slices.Sorted(maps.Keys(locked)) {
			kept := func() bool { return slices.ContainsFunc(locked[address].Hashes, e.isKept) }
			if kept() {
				continue
			}
			entry, _ := e.downloading.LoadOrStore(address, &sync.Mutex{})
			one := entry.(*sync.Mutex)
			one.Lock()
			if kept() {
				one.Unlock()
				continue
			}
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
	e.keeping.Lock()
	defer e.keeping.Unlock()
	for address, selected := range locked {
		at := slices.IndexFunc(selected.Hashes, e.verify)
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
		if err := e.keep(unpacked); err != nil {
			return fmt.Errorf("keeping a provider: %w", err)
		}
	}
	return nil
}

// keep moves one provider, unless the work folder has it.
func (e *Engine) keep(unpacked string) error {
	checksum, err := dirhash.HashDir(unpacked, "", dirhash.Hash1)
	if err != nil {
		return err
	}
	e.keeping.Lock()
	defer e.keeping.Unlock()
	kept := e.dir.downloaded(checksum)
	if e.verify(checksum) {
		err = os.RemoveAll(unpacked)
	} else {
		err = os.Rename(unpacked, kept)
	}
	if err != nil {
		return err
	}
	e.verified[checksum] = true
	return os.Symlink(kept, unpacked)
}
