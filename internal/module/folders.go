package module

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// LoadFolders loads modules from folders of the disk. A folder with a module.yaml is a module; another is a folder of modules, and must
// hold at least one. What a link inside a folder leads to outside of it is not read. The error joins those of all folders.
func LoadFolders(folders ...string) ([]*Module, error) {
	var loaded []*Module
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

func loadFolder(folder string) (loaded []*Module, err error) {
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(absolute)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	if _, err := fs.Stat(root.FS(), metadataFile); err == nil {
		one, err := loadAs(filepath.Base(absolute), root.FS())
		if err != nil {
			return nil, err
		}
		return []*Module{one}, nil
	}
	loaded, err = LoadAll(root.FS())
	if err == nil && len(loaded) == 0 {
		return nil, fmt.Errorf("it holds neither %s nor a folder of a module; name a module, or a folder of modules", metadataFile)
	}
	return loaded, err
}
