package module

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/engine/batch"
	"github.com/machine-iac/machine-iac-operator/internal/engine/tofu"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/contract"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/internal/module/source"
)

// moduleFolders returns the folders of the modules in the arguments, each once.
func moduleFolders(dirs []string) ([]string, error) {
	var folders []string
	for _, dir := range dirs {
		found, err := foldersIn(filepath.Clean(dir))
		if err != nil {
			return nil, err
		}
		for _, folder := range found {
			if !slices.Contains(folders, folder) {
				folders = append(folders, folder)
			}
		}
	}
	return folders, nil
}

// foldersIn returns dir itself if it has the files of a module, else its subfolders.
func foldersIn(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("looking for modules in %s: %w", dir, err)
	}
	var inside []string
	for _, entry := range entries {
		name := entry.Name()
		switch {
		case entry.IsDir() && !strings.HasPrefix(name, "."):
			inside = append(inside, filepath.Join(dir, name))
		case name == "module.yaml" || filepath.Ext(name) == ".tf":
			return []string{dir}, nil
		}
	}
	if len(inside) == 0 {
		return nil,
			fmt.Errorf("looking for modules in %s: there is no module.yaml and no folder; name the folder of a module, or one whose folders are modules", dir)
	}
	return inside, nil
}

// findModules returns the modules in the arguments, which are folders and references, each folder
// once.
func findModules(ctx context.Context, arguments []string) ([]*checkedModule, error) {
	var dirs []string
	var fetched []*checkedModule
	for _, argument := range arguments {
		if !source.IsReference(argument) {
			dirs = append(dirs, argument)
			continue
		}
		files, err := source.Files(ctx, argument, source.Options{})
		if err != nil {
			return nil, err
		}
		reference, err := source.ParseReference(argument)
		if err != nil {
			return nil, err
		}
		fetched = append(fetched, &checkedModule{Dir: reference.String(), files: files})
	}
	folders, err := moduleFolders(dirs)
	if err != nil {
		return nil, err
	}
	found := make([]*checkedModule, 0, len(folders)+len(fetched))
	for _, folder := range folders {
		found = append(found, &checkedModule{Dir: folder, files: os.DirFS(folder)})
	}
	return append(found, fetched...), nil
}

// checkContracts checks every module against the contract.
func checkContracts(found []*checkedModule) *checkedModules {
	checked := &checkedModules{Modules: found}
	var loaded []*module.Module
	for _, one := range found {
		one.checkContract()
		if one.loaded != nil {
			loaded = append(loaded, one.loaded)
		}
	}
	if _, err := module.NewCatalog(loaded...); err != nil {
		checked.Problems = append(checked.Problems, err.Error())
	}
	return checked
}

func (m *checkedModule) checkContract() {
	loaded, err := load.Module(m.files)
	if err == nil && !source.IsReference(m.Dir) {
		err = checkName(m.Dir, loaded)
	}
	var broken *contract.Error
	switch {
	case errors.As(err, &broken):
		m.add(broken.Breaches...)
		return
	case err != nil:
		m.add(contract.Breach{Problem: err.Error()})
		return
	}
	if breaches := checkInstallation(loaded); len(breaches) > 0 {
		m.add(breaches...)
		return
	}
	m.loaded = loaded
	m.Reference = loaded.Reference()
	m.Kinds = kindsOf(loaded)
	m.Providers = providersOf(loaded)
	for _, one := range loaded.Defaults() {
		m.Defaults = append(m.Defaults, one.Path)
	}
	if _, err := batch.NewModule(loaded.Files()); err != nil && loaded.Traits().HCL {
		m.NoBatches = err.Error()
	}
	if content, err := fs.ReadFile(loaded.Files(), lockFile); err == nil {
		m.WithoutChecksums, _ = tofu.WithoutChecksums(content) // an unreadable lock file is a breach
	}
	m.checkFields(loaded)
	if err := m.readExample(loaded); err != nil {
		m.add(contract.Breach{File: exampleFile, Problem: err.Error()})
	}
	if len(m.Breaches) == 0 {
		m.Passed = []string{"contract"}
	}
}

// checkName checks, like load.Modules, that a module has the name of its folder.
func checkName(folder string, loaded *module.Module) error {
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	if name := filepath.Base(absolute); name != loaded.Name() {
		return &contract.Error{Module: loaded.Name(), Breaches: []contract.Breach{{
			File: "module.yaml", What: "metadata.name", Problem: fmt.Sprintf("is %q in the folder %s", loaded.Name(),
				name), Fix: "use the folder's name",
		}}}
	}
	return nil
}

// add adds breaches whose files are relative to the module's folder.
func (m *checkedModule) add(breaches ...contract.Breach) {
	for _, found := range breaches {
		switch {
		case !source.IsReference(m.Dir):
			found.File = filepath.Join(m.Dir, found.File)
		case found.File == "":
			found.File = m.Dir
		default:
			found.File = m.Dir + "/" + found.File
		}
		m.Breaches = append(m.Breaches, breach(found))
	}
}

// kindsOf returns the kinds that a module serves, or the generic one if it has none of its own.
func kindsOf(loaded *module.Module) []string {
	var kinds []string
	for _, served := range loaded.Spec().ProviderSpecs {
		for _, apiVersion := range served.APIVersions {
			kinds = append(kinds, apiVersion+" "+served.Kind)
		}
	}
	if len(kinds) == 0 {
		kinds = append(kinds, v1alpha1.GroupVersion.String()+" "+loaded.Traits().KindForAny)
	}
	return kinds
}

// providersOf returns the providers with their versions, and the packages of a stack that bridge
// none. A provider in both engines' registries is listed once, without a host.
func providersOf(loaded *module.Module) []string {
	var providers []string
	for _, provider := range loaded.Providers() {
		source := provider.Source()
		if provider.Host == module.OpenTofuHost || provider.Host == module.TerraformHost {
			source = provider.Namespace + "/" + provider.Type
		}
		if text := source + " " + provider.Version; !slices.Contains(providers, text) {
			providers = append(providers, text)
		}
	}
	for _, one := range loaded.Packages() {
		if one.Provider == nil {
			providers = append(providers, one.Name+" "+one.Version)
		}
	}
	return providers
}
