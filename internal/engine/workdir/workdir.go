package workdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// maxSocketPath is the maximum length of a Unix socket's path. Plugins create sockets in their
// temporary folder.
const (
	maxSocketPath = 107
	socketName    = "plugin1234567890"
)

// Make creates an engine's private folder and returns its absolute path without links, as the
// kernel reports a process's working folder. sockets is the longest relative path of a temporary
// folder for plugins.
func Make(path, sockets string) (string, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return "", fmt.Errorf("creating the work folder: %w", err)
	}
	absolute, err := filepath.Abs(path)
	if err == nil {
		absolute, err = filepath.EvalSymlinks(absolute)
	}
	if err != nil {
		return "", fmt.Errorf("finding the work folder: %w", err)
	}
	if longest := len(filepath.Join(absolute, sockets, socketName)); longest > maxSocketPath {
		return "",
			fmt.Errorf("the path of the work folder %s is %d characters too long for sockets of plugins; use a shorter one",
				absolute, longest-maxSocketPath)
	}
	if err := os.Chmod(absolute, 0o700); err != nil {
		return "", fmt.Errorf("making the work folder private: %w", err)
	}
	return absolute, nil
}

// Lock locks an engine's folder for a living engine until the returned file is closed. The lock
// ends with the process, however that ends.
func Lock(dir string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the work folder: %w", err)
	}
	locked, err := TryLock(file)
	switch {
	case locked:
		return file, nil
	case err == nil:
		err = fmt.Errorf("the work folder %s belongs to another running engine; use another folder", dir)
	default:
		err = fmt.Errorf("locking the work folder %s: %w", dir, err)
	}
	return nil, errors.Join(err, file.Close())
}
