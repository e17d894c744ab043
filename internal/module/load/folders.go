package load

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// Folders loads modules from folders on disk. A folder with a module.yaml is a module; any other is
// a folder of modules and must contain at least one. It does not follow links out of a folder. The
// error joins those of all folders.
func Folders(folders ...string) ([]*module.Module, error) {
	var loaded []*module.Module
	var failed []error
	for _, folder := range folders {
		found, err := loadFolder(folder)
		if err != nil {
			failed = append(failed, fmt.Errorf("loading modules from %s: %w", folder, err))
			continue
		}
		loaded = append(loaded, found...)
	}
	if len(failed) > 0 {
		return nil, errors.Join(failed...)
	}
	return loaded, nil
}

func loadFolder(folder string) (loaded []*module.Module, err error) {
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(absolute)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	if _, err := fs.Stat(root.FS(), module.MetadataFile); err == nil {
		one, err := named(filepath.Base(absolute), root.FS())
		if err != nil {
			return nil, err
		}
		return []*module.Module{one}, nil
	}
	loaded, err = Modules(root.FS())
	if err == nil && len(loaded) == 0 {
		return nil, fmt.Errorf("it contains neither %s nor the folder of a module; set a module, or a folder of modules",
			module.MetadataFile)
	}
	return loaded, err
}
