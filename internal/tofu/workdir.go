package tofu

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// maxSocketPath is how long the path of a Unix socket may be. Plugins make theirs in the temporary folder that they are given,
// which is a slot.
const (
	maxSocketPath = 107
	socketName    = "plugin1234567890"
)

// workDir is the absolute path of an engine's work folder, free of links, as the kernel tells a process's folder.
type workDir string

func (d workDir) path(parts ...string) string {
	return filepath.Join(append([]string{string(d)}, parts...)...)
}
func (d workDir) cliConfig() string   { return d.path("cli.tfrc") }
func (d workDir) modules() string     { return d.path("modules") }
func (d workDir) runs() string        { return d.path("runs") }
func (d workDir) slots() string       { return d.path("slots") }
func (d workDir) idle() string        { return d.path("idle") }
func (d workDir) providers() string   { return d.path("providers") }
func (d workDir) noProviders() string { return d.path("no-providers") }

func makeWorkDir(path string) (workDir, error) {
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
	if longest := len(filepath.Join(absolute, "slots", "999", socketName)); longest > maxSocketPath {
		return "", fmt.Errorf("the work folder's path %s is %d characters too long for the sockets of plugins; choose a shorter one",
			absolute, longest-maxSocketPath)
	}
	if err := os.Chmod(absolute, 0o700); err != nil {
		return "", fmt.Errorf("making the work folder private: %w", err)
	}
	return workDir(absolute), nil
}

// take locks the folder. The lock ends with the process, however it ends.
func (d workDir) take() (*os.File, error) {
	file, err := os.OpenFile(d.path("lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the work folder: %w", err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return file, nil
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = fmt.Errorf("the work folder %s belongs to another engine that is alive; choose another folder", d)
	} else {
		err = fmt.Errorf("locking the work folder %s: %w", d, err)
	}
	return nil, errors.Join(err, file.Close())
}

// stagingPrefix begins the name of a module's folder that is not ready.
const stagingPrefix = ".new-"

// clean makes the folders inside and removes what a predecessor did not finish. Runs stay: they may hold a state.
func (d workDir) clean() error {
	if err := os.RemoveAll(d.slots()); err != nil {
		return fmt.Errorf("cleaning the work folder: %w", err)
	}
	for _, path := range []string{d.modules(), d.runs(), d.slots(), d.idle(), d.noProviders()} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			return fmt.Errorf("making the work folder: %w", err)
		}
	}
	entries, err := os.ReadDir(d.modules())
	if err != nil {
		return fmt.Errorf("cleaning the work folder: %w", err)
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), stagingPrefix) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(d.modules(), entry.Name())); err != nil {
			return fmt.Errorf("cleaning the work folder: %w", err)
		}
	}
	return nil
}
