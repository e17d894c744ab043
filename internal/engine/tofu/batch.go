package tofu

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/machine-iac/machine-iac-operator/internal/engine/batch"
)

// Batch is a root module that calls the run's module and uses its providers.
type Batch struct {
	// Layout is that of the root module and the state.
	Layout batch.Layout
	// Parts are what the states of the Machines are made of, where the engine changes something; nil where it only plans. What the engine could not save is
	// left as so many abandoned runs, of which each has the state of its Machine.
	Parts *batch.Parts
	// Root is the HCL of the root module. It and the following fields are unused if the run is Bare.
	Root []byte
	// Folder is where the module is called from, relative to the root module.
	Folder string
	// Files replace the module's own files there, by name.
	Files map[string][]byte
}

const (
	batchFile = "batch.tf"
	// modulesDir and manifestFile list the called modules in the data folder.
	modulesDir   = "modules"
	manifestFile = "modules.json"
)

// linkBatch links the root module into the run's folder, with the called module below it.
func (f *Workspace) linkBatch(whole string) error {
	called := filepath.Join(f.dir, f.run.Batch.Folder)
	if err := os.Mkdir(called, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(whole)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := entry.Name()
		switch replaced, ok := f.run.Batch.Files[name]; {
		case name == dataDir:
			err = f.linkData(filepath.Join(whole, name))
		case name == lockFile || name == backendFile:
			err = os.Symlink(filepath.Join(whole, name), filepath.Join(f.dir, name))
		case ok:
			err = os.WriteFile(filepath.Join(called, name), replaced, 0o600)
		default:
			err = f.linkBoth(whole, called, name)
		}
		if err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(f.dir, batchFile), f.run.Batch.Root, 0o600)
}

// linkBoth links a file or folder into the called module, and beside the root module, since
// relative paths are resolved from there. Only HCL belongs to the called module alone.
func (f *Workspace) linkBoth(whole, called, name string) error {
	from := filepath.Join(whole, name)
	if err := os.Symlink(from, filepath.Join(called, name)); err != nil || filepath.Ext(name) == ".tf" ||
		name == f.run.Batch.Folder {
		return err
	}
	return os.Symlink(from, filepath.Join(f.dir, name))
}

// linkData creates the data folder as `init` would: with the module's providers, and with the
// module call.
func (f *Workspace) linkData(from string) error {
	data := filepath.Join(f.dir, dataDir)
	if err := os.MkdirAll(filepath.Join(data, modulesDir), 0o700); err != nil {
		return err
	}
	if err := linkAll(from, data, func(name string) bool { return name == modulesDir }); err != nil {
		return err
	}
	type call struct{ Key, Source, Dir string }
	calls := []call{{Dir: "."}}
	for _, name := range f.run.Batch.Layout.Calls() {
		calls = append(calls, call{Key: name, Source: "./" + f.run.Batch.Folder, Dir: f.run.Batch.Folder})
	}
	manifest, err := json.Marshal(map[string][]call{"Modules": calls})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(data, modulesDir, manifestFile), manifest, 0o600)
}

// partsDir holds an empty marker file for each Machine of a batch until its part is discarded.
const partsDir = "machine-iac-parts"

// markParts creates the markers before anything runs: the disk may be full later.
func (f *Workspace) markParts() error {
	if err := os.Mkdir(filepath.Join(f.dir, partsDir), 0o700); err != nil {
		return err
	}
	for _, part := range f.run.Batch.Parts.Machines {
		if !runIDPattern.MatchString(part.Run) {
			return fmt.Errorf("run ID %q cannot be used as a file name; use letters, digits and ._-", part.Run)
		}
		if err := os.WriteFile(filepath.Join(f.dir, partsDir, part.Run), nil, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Settled forgets the run of a Machine whose state is stored and complete, while the engine works
// for others of the batch.
func (f *Workspace) Settled(run string) error {
	return os.Remove(filepath.Join(f.dir, partsDir, run))
}

// Used returns the providers of the module, as in [engine.Report].
func (f *Workspace) Used() string { return f.used }

// readBatch returns the abandoned runs in the folder of a batch: one for each Machine whose part
// was not discarded, or none if the state cannot be split. It never returns the whole state, which
// contains resources of other Machines.
func readBatch(dir string, whole runMetadata) ([]AbandonedRun, error) {
	state, err := readErroredState(dir)
	if err == nil && state == nil {
		return nil, nil
	}
	if err == nil {
		if _, err := whole.Batch.Split(state); err != nil {
			return nil, err
		}
	}
	var left []AbandonedRun
	for n, part := range whole.Batch.Machines {
		if runIDPattern.MatchString(part.Run) && exists(filepath.Join(dir, partsDir, part.Run)) {
			left = append(left, AbandonedRun{
				ID: part.Run, Module: whole.Module, Started: whole.Started, Identity: part.Identity, dir: dir,
				batch: whole.Batch, part: n,
			})
		}
	}
	return left, nil
}

// readOrRemove returns the abandoned runs in a folder. It removes the folder of a batch that has
// none.
func readOrRemove(dir string) ([]AbandonedRun, error) {
	record := readRecord(dir)
	if record.Batch == nil {
		return []AbandonedRun{readAbandonedRun(dir)}, nil
	}
	left, err := readBatch(dir, record)
	if len(left) == 0 {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return left, err
}
