package module

import (
	"os"
	"path"
	"path/filepath"

	"github.com/machine-iac/machine-iac-operator/internal/module/contract"
)

// search is a folder of the module whose files run next to those of the module.
type search struct {
	folder string
	files  []string
}

// searches returns the module's searches.
func (w *work) searches() []search {
	if !w.module.loaded.Traits().HCL {
		return nil
	}
	var found []search
	for _, one := range []search{
		{contract.LookupFolder, w.module.loaded.LookupFiles()},
		{contract.AdoptFolder, w.module.loaded.AdoptFiles()},
		{contract.InventoryFolder, w.module.loaded.InventoryFiles()},
		{contract.CapacityFolder, w.module.loaded.CapacityFiles()},
	} {
		if len(one.files) > 0 {
			found = append(found, one)
		}
	}
	return found
}

// copySearch copies the files of a search next to those of the module, as in a run, until the
// returned function is called.
func (w *work) copySearch(of search) (remove func(), err error) {
	w.beside = of
	remove = func() {
		for _, name := range of.files {
			_ = os.Remove(filepath.Join(w.dir, path.Base(name))) // the whole folder is removed later
		}
		w.beside = search{}
	}
	for _, name := range of.files {
		content, err := os.ReadFile(filepath.Join(w.dir, filepath.FromSlash(name)))
		if err == nil {
			err = os.WriteFile(filepath.Join(w.dir, path.Base(name)), content, 0o600)
		}
		if err != nil {
			remove()
			return nil, err
		}
	}
	return remove, nil
}
