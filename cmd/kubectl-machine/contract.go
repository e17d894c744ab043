package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// moduleFolders answers the folders of the modules that the arguments name, each once.
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

// foldersIn answers dir itself when it looks like a module, else the folders in it.
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
		return nil, fmt.Errorf("looking for modules in %s: there is no module.yaml and no folder; name the folder of a module, or one whose folders are modules", dir)
	}
	return inside, nil
}

// checkFolders holds every folder to the contract.
func checkFolders(folders []string) *checkedModules {
	checked := &checkedModules{Modules: make([]*checkedModule, 0, len(folders))}
	var loaded []*module.Module
	for _, folder := range folders {
		one := checkFolder(folder)
		checked.Modules = append(checked.Modules, one)
		if one.loaded != nil {
			loaded = append(loaded, one.loaded)
		}
	}
	if _, err := module.NewCatalog(loaded...); err != nil {
		checked.Problems = append(checked.Problems, err.Error())
	}
	return checked
}

func checkFolder(folder string) *checkedModule {
	checked := &checkedModule{Dir: folder}
	loaded, err := module.Load(os.DirFS(folder))
	if err == nil {
		err = checkName(folder, loaded)
	}
	var broken *module.ContractError
	switch {
	case errors.As(err, &broken):
		checked.add(broken.Breaches...)
		return checked
	case err != nil:
		checked.add(module.Breach{Problem: err.Error()})
		return checked
	}
	checked.loaded = loaded
	checked.Reference = loaded.Reference()
	checked.Kinds = kindsOf(loaded)
	checked.Providers = providersOf(loaded)
	checked.Passed = []string{"contract"}
	return checked
}

// checkName checks what module.LoadAll does: a module is called as its folder.
func checkName(folder string, loaded *module.Module) error {
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	if name := filepath.Base(absolute); name != loaded.Name() {
		return &module.ContractError{Module: loaded.Name(), Breaches: []module.Breach{{
			File: "module.yaml", What: "metadata.name", Problem: fmt.Sprintf("is %q in the folder %s", loaded.Name(), name), Mend: "use the folder's name",
		}}}
	}
	return nil
}

// add takes breaches whose files are told from the module's folder.
func (m *checkedModule) add(breaches ...module.Breach) {
	for _, found := range breaches {
		found.File = filepath.Join(m.Dir, found.File)
		m.Breaches = append(m.Breaches, breach(found))
	}
}

func kindsOf(loaded *module.Module) []string {
	var kinds []string
	for _, served := range loaded.Spec().ProviderSpecs {
		for _, apiVersion := range served.APIVersions {
			kinds = append(kinds, apiVersion+" "+served.Kind)
		}
	}
	return kinds
}

// providersOf answers the providers with their versions. One that both engines' registries have is told once, without a host.
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
	return providers
}
