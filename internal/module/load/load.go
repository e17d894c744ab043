// Package load reads provider modules and stacks from folders. It checks their contract and builds
// what a run needs.
package load

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/contract"
)

// Module reads and checks the module in the root of fsys. If the module breaks the contract, the
// error is a [*contract.Error] with every breach. Any other error is about reading fsys.
func Module(fsys fs.FS) (*module.Module, error) {
	files, err := module.ReadFiles(fsys)
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

// loader reads the modules of an engine.
type loader struct {
	engine v1alpha1.Engine
	// program is a file that every module of the engine has, and no module of another engine.
	program string
	// check reads a module and checks it against the contract. meta may be nil.
	check func(files module.Files, meta *contract.Metadata, found *contract.Report) module.Definition
}

// loaders has the loader of every engine but the default, whose loader is [contract.CheckHCL].
var loaders = []loader{
	{v1alpha1.EnginePulumi, contract.ProjectFile, checkStack},
}

// check reads a module with the loader of the engine in module.yaml. Without a module.yaml, the files tell. meta may be
// nil.
func check(files module.Files, meta *contract.Metadata, found *contract.Report) module.Definition {
	for _, one := range loaders {
		_, matches := files[one.program]
		if meta != nil {
			matches = meta.Spec.Engine == one.engine
		}
		if matches {
			return one.check(files, meta, found)
		}
	}
	return contract.CheckHCL(files, meta, found)
}

// addMetadata adds the parts of module.yaml that refer to the variable provider_spec. meta may be
// nil.
func addMetadata(to *module.Definition, meta *contract.Metadata) {
	if meta == nil {
		return
	}
	providerSpec := to.Variables[module.VariableProviderSpec]
	contract.CheckPaths(meta, providerSpec)
	to.Defaults = contract.ReadDefaults(meta, providerSpec)
	to.Rights = contract.ReadRights(meta, to.Variables)
	to.Name, to.Spec = meta.Metadata.Name, meta.Spec
	to.Absent, to.AdoptAbsent, to.Final, to.InstanceTypes, to.Identities = meta.Absent, meta.AdoptAbsent, meta.Final,
		meta.InstanceTypes, meta.Identities
	to.NothingMade, to.Hints = meta.NothingMade, meta.Hints
	meta.CheckInstances(to.Instances...)
}

// embedded caches functions that return the modules of embedded file systems.
var embedded sync.Map

// Modules loads the module in every folder of fsys. The error joins those of all folders, each with
// the folder's name. Embedded file systems do not change, so they are read only once.
func Modules(fsys fs.FS) ([]*module.Module, error) {
	fixed, ok := fsys.(embed.FS)
	if !ok {
		return readModules(fsys)
	}
	once, _ := embedded.LoadOrStore(fixed, sync.OnceValues(func() ([]*module.Module, error) { return readModules(fixed) }))
	loaded, err := once.(func() ([]*module.Module, error))()
	return slices.Clone(loaded), err
}

// readModules loads the module in every folder.
func readModules(fsys fs.FS) ([]*module.Module, error) {
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

// named loads a module and checks its name.
func named(name string, folder fs.FS) (*module.Module, error) {
	one, err := Module(folder)
	if err != nil {
		return nil, err
	}
	if one.Name() != name {
		return nil, &contract.Error{Module: one.Name(), Engine: one.Engine(), Breaches: []contract.Breach{{
			File: module.MetadataFile, What: "metadata.name", Problem: fmt.Sprintf("is %q in the folder %s", one.Name(),
				name), Fix: "use the folder's name",
		}}}
	}
	return one, nil
}
