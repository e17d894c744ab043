package tofu

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/machine-iac/machine-iac-operator/internal/engine/batch"
)

// Batch is a root module that calls the module of a run, and uses its providers.
type Batch struct {
	// Parts are what the states of the Machines are made of, where the engine changes something; nil where it only plans. What the engine could not save is
	// left as so many abandoned runs, of which each has the state of its Machine.
	Parts *batch.Parts
	// Root is the HCL of the root module.
	Root []byte
	// Folder is where the module is called from, below the root module.
	Folder string
	// Files are those that the module has there in place of its own, by name.
	Files map[string][]byte
}

const (
	batchFile = "batch.tf"
	// modulesDir and manifestFile say in the data folder which modules are called.
	modulesDir   = "modules"
	manifestFile = "modules.json"
)

// linkBatch puts the root module into the run's folder, with the module below it.
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

// linkBoth links a file or folder into the module that is called, and beside the root module too, since paths that begin nowhere are read from
// there. Only the HCL is the called module's alone.
func (f *Workspace) linkBoth(whole, called, name string) error {
	from := filepath.Join(whole, name)
	if err := os.Symlink(from, filepath.Join(called, name)); err != nil || filepath.Ext(name) == ".tf" || name == f.run.Batch.Folder {
		return err
	}
	return os.Symlink(from, filepath.Join(f.dir, name))
}

// linkData makes the data folder as `init` would: the module's, and that it is called.
func (f *Workspace) linkData(from string) error {
	data := filepath.Join(f.dir, dataDir)
	if err := os.MkdirAll(filepath.Join(data, modulesDir), 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Name() == modulesDir {
			continue
		}
		if err := os.Symlink(filepath.Join(from, entry.Name()), filepath.Join(data, entry.Name())); err != nil {
			return err
		}
	}
	type call struct{ Key, Source, Dir string }
	folder := f.run.Batch.Folder
	manifest, err := json.Marshal(map[string][]call{"Modules": {{Dir: "."}, {Key: "machine", Source: "./" + folder, Dir: folder}}})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(data, modulesDir, manifestFile), manifest, 0o600)
}

// disperse makes of the folder of a run for several Machines one for each, with the state that it has of that Machine and that is not saved. It may be called again
// where it was not finished. A run that has no such state leaves none.
func disperse(dir string, whole runMetadata) ([]AbandonedRun, error) {
	unsaved, err := readErroredState(dir)
	if err != nil {
		return nil, err
	}
	var left []AbandonedRun
	if unsaved != nil {
		states, err := whole.Batch.Split(unsaved)
		if err != nil {
			return nil, err
		}
		for n, part := range whole.Batch.Machines {
			one := whole
			one.ID, one.Identity, one.Batch = part.Run, part.Identity, nil
			into := filepath.Join(filepath.Dir(dir), part.Run)
			if err := writeAbandonedRun(into, one, states[n]); err != nil {
				return nil, err
			}
			left = append(left, readAbandonedRun(into))
		}
	}
	return left, os.RemoveAll(dir)
}

// writeAbandonedRun writes a folder as a run leaves one whose state could not be saved. The state comes first: with a record the folder counts.
func writeAbandonedRun(dir string, record runMetadata, state []byte) error {
	content, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("writing the run's record: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, erroredFile), state, 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, runFile), content, 0o600)
}
