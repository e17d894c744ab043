package tofu

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/machine-iac/machine-iac-operator/internal/engine/redact"
	"github.com/machine-iac/machine-iac-operator/internal/engine/workdir"
)

// workDir is the absolute path of an engine's work folder without links, as the kernel reports a
// process's working folder.
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
func (d workDir) downloads() string   { return d.path("downloads") }
func (d workDir) noProviders() string { return d.path("no-providers") }

// makeWorkDir creates the folder. Plugins create sockets in their temporary folder, which is a
// slot.
func makeWorkDir(path string) (workDir, error) {
	dir, err := workdir.Make(path, filepath.Join("slots", "999"))
	return workDir(dir), err
}

// redactor removes sensitive strings, and the paths of runs, processes and modules, from reports.
func (d workDir) redactor(sensitive []string) *redact.Redactor {
	return redact.New(sensitive).Inside(string(d), []string{"runs", "slots", "modules", "providers"}, []string{moduleDir})
}

// stagingPrefix starts the name of an unfinished module folder.
const stagingPrefix = ".new-"

// clean creates the folders inside and removes unfinished folders of a predecessor. It keeps runs,
// since they may contain a state.
func (d workDir) clean() error {
	if err := os.RemoveAll(d.slots()); err != nil {
		return fmt.Errorf("cleaning the work folder: %w", err)
	}
	for _, path := range []string{d.modules(), d.runs(), d.slots(), d.idle(), d.downloads(), d.noProviders()} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			return fmt.Errorf("creating the work folder: %w", err)
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
