package workdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// maxSocketPath is how long the path of a Unix socket may be. Plugins make theirs in the temporary folder that they are given.
const (
	maxSocketPath = 107
	socketName    = "plugin1234567890"
)

// Make makes an engine's private folder where it is absent, and returns its absolute path, free of links, as the kernel reports a
// process's folder. Sockets is the longest path inside in which plugins get a temporary folder.
func Make(path, sockets string) (string, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return "", fmt.Errorf("making the work folder: %w", err)
	}
	absolute, err := filepath.Abs(path)
	if err == nil {
		absolute, err = filepath.EvalSymlinks(absolute)
	}
	if err != nil {
		return "", fmt.Errorf("finding the work folder: %w", err)
	}
	if longest := len(filepath.Join(absolute, sockets, socketName)); longest > maxSocketPath {
		return "", fmt.Errorf("the work folder's path %s is %d characters too long for the sockets of plugins; choose a shorter one",
			absolute, longest-maxSocketPath)
	}
	if err := os.Chmod(absolute, 0o700); err != nil {
		return "", fmt.Errorf("making the work folder private: %w", err)
	}
	return absolute, nil
}

// Lock takes an engine's folder for one engine that is alive, until the file that it returns is closed. The lock ends with the
// process, however it ends.
func Lock(dir string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the work folder: %w", err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return file, nil
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = fmt.Errorf("the work folder %s belongs to another engine that is alive; choose another folder", dir)
	} else {
		err = fmt.Errorf("locking the work folder %s: %w", dir, err)
	}
	return nil, errors.Join(err, file.Close())
}
