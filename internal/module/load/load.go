// Package load reads provider modules and stacks from folders: it checks them against their contract, and puts together what a run needs.
package load

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/confine"
	"github.com/machine-iac/machine-iac-operator/internal/module/contract"
	"github.com/machine-iac/machine-iac-operator/internal/module/snapshot"
	"github.com/machine-iac/machine-iac-operator/internal/module/stack"
)

// Module reads the module in the root of fsys and checks it against the contract. For a module that breaks it the error is a
// [*contract.Error] that lists every breach; any other error is one of reading fsys.
func Module(fsys fs.FS) (*module.Module, error) {
	files, err := snapshot.Read(fsys)
	if err != nil {
		return nil, err
	}
	found := &contract.Report{}
	meta := contract.ReadMetadata(files, found)
	contract.CheckDocumentation(files, found)
	loaded := check(files, meta, found)
	addMetadata(&loaded, meta)
	if err := found.Err(loaded.Name, loaded.Spec.Engine); err != nil {
		return nil, err
	}
	loaded.Files = files.Only(func(name string) bool { return contract.InfluencesRun(name) && !meta.IsCatalogue(name) })
	return module.New(loaded), nil
}

// check checks what the engine runs that module.yaml or the files name. meta may be nil.
func check(files snapshot.Files, meta *contract.Metadata, found *contract.Report) module.Definition {
	if stack.Is(meta, files) {
		return stack.Check(files, meta, found)
	}
	loaded := contract.CheckHCL(files, meta, found)
	confine.CheckHCL(files, found)
	return loaded
}

// addMetadata adds what module.yaml says, once the variable provider_spec is known that it refers to. meta may be nil.
func addMetadata(to *module.Definition, meta *contract.Metadata) {
	if meta == nil {
		return
	}
	providerSpec := to.Variables[module.VariableProviderSpec]
	contract.CheckPaths(meta, providerSpec)
	to.Defaults = contract.ReadDefaults(meta, providerSpec)
	to.Rights = contract.ReadRights(meta, to.Variables)
	to.Name, to.Spec = meta.Metadata.Name, meta.Spec
	to.Absent, to.AdoptAbsent, to.Final, to.InstanceTypes = meta.Absent, meta.AdoptAbsent, meta.Final, meta.InstanceTypes
}

// embedded has, by their embedded file systems, functions that return their modules.
var embedded sync.Map

// Modules loads the module in every folder of fsys. The error joins those of all folders, each with the folder's name. What is embedded
// in this program does not change, and is read once.
func Modules(fsys fs.FS) ([]*module.Module, error) {
	fixed, ok := fsys.(embed.FS)
	if !ok {
		return readModules(fsys, nil)
	}
	once, _ := embedded.LoadOrStore(fixed, sync.OnceValues(func() ([]*module.Module, error) { return readModules(fixed, nil) }))
	loaded, err := once.(func() ([]*module.Module, error))()
	return slices.Clone(loaded), err
}

// kindLine matches a line of module.yaml with the kind of an object, or of a providerSpec.
var kindLine = regexp.MustCompile(`(?m)^[ -]*kind: *([A-Za-z0-9]+) *$`)

// Serving is Modules without those modules that have none of these names and serve no providerSpec of these kinds: they are not parsed, which for a
// short process would be most of its work.
func Serving(fsys fs.FS, names, kinds []string) ([]*module.Module, error) {
	return readModules(fsys, func(name string, folder fs.FS) bool {
		if slices.Contains(names, name) {
			return true
		}
		metadata, err := fs.ReadFile(folder, module.MetadataFile)
		return err != nil || slices.ContainsFunc(kindLine.FindAllSubmatch(metadata, -1), func(found [][]byte) bool {
			return slices.Contains(kinds, string(found[1]))
		})
	})
}

// readModules loads the modules in those folders that are wanted, nil for all.
func readModules(fsys fs.FS, wanted func(name string, folder fs.FS) bool) ([]*module.Module, error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, fmt.Errorf("listing modules: %w", err)
	}
	var loaded []*module.Module
	var failed []error
	for _, entry := range entries {
		if !entry.IsDir() || strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		folder, err := fs.Sub(fsys, entry.Name())
		if err != nil {
			return nil, fmt.Errorf("opening module folder %s: %w", entry.Name(), err)
		}
		if wanted != nil && !wanted(entry.Name(), folder) {
			continue
		}
		one, err := named(entry.Name(), folder)
		if err != nil {
			failed = append(failed, fmt.Errorf("loading module folder %s: %w", entry.Name(), err))
			continue
		}
		loaded = append(loaded, one)
	}
	if len(failed) > 0 {
		return nil, errors.Join(failed...)
	}
	return loaded, nil
}

// named loads a module that must have a name.
func named(name string, folder fs.FS) (*module.Module, error) {
	one, err := Module(folder)
	if err != nil {
		return nil, err
	}
	if one.Name() != name {
		return nil, &contract.Error{Module: one.Name(), Engine: one.Engine(), Breaches: []contract.Breach{{
			File: module.MetadataFile, What: "metadata.name", Problem: fmt.Sprintf("is %q in the folder %s", one.Name(), name), Fix: "use the folder's name",
		}}}
	}
	return one, nil
}
