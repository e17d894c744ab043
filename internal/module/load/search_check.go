package load

import (
	"path"
	"slices"
	"strings"

	yamlnode "go.yaml.in/yaml/v3"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/contract"
)

// searchRules are the differences between the searches of stacks. A stack has no inventory: a
// program reads single objects by ID.
type searchRules struct {
	folder, title string
	declared      func(spec v1alpha1.ModuleSpec) bool
	// changed is why an ID must not depend on the providerSpec, and from what it depends on instead.
	changed, from string
}

var searches = []searchRules{
	{
		folder: contract.LookupFolder, title: "a lookup",
		declared: func(spec v1alpha1.ModuleSpec) bool { return spec.Lookup != nil },
		changed:  "which may have changed since the interrupted create", from: "machine",
	},
	{
		folder: contract.AdoptFolder, title: "an adoption",
		declared: func(spec v1alpha1.ModuleSpec) bool { return spec.Adopt != nil },
		changed:  "which says nothing about an existing instance", from: "adopt",
	},
}

// searchFile returns the program of the search in a folder.
func searchFile(folder string) string { return path.Join(folder, projectFile) }

// searchFiles returns the program of the search in a folder, if any.
func searchFiles(files module.Files, folder string) []string {
	return files.Names(func(name string) bool { return name == searchFile(folder) })
}

func (p *program) isSearch() bool { return contract.IsSearchFolder(path.Dir(p.file)) }

func (p *program) adopts() bool { return p.file == searchFile(contract.AdoptFolder) }

// search checks the program of a search and returns it, or nil if there is none or it is
// unreadable.
func (c programCheck) search(rules searchRules, of *program) (search *program, readable bool) {
	file, field := searchFile(rules.folder), "spec."+rules.folder
	_, exists := c.files[file]
	declared := c.metadata != nil && rules.declared(c.metadata.Spec)
	switch {
	case declared && !exists:
		c.metadata.AtField(field, "is set, but there is no "+file, "create it, or remove "+field)
	case exists && !declared && c.metadata != nil:
		c.found.Add(contract.Breach{File: file, Problem: "exists, but module.yaml has no " + field,
			Fix: "add " + field + ": {}"})
	}
	if !exists {
		return nil, true
	}
	if search = readProgram(c.files, file, c.found); search == nil {
		return nil, false
	}
	c.project(search)
	if !search.isYAML() {
		return search, true
	}
	for _, one := range search.resources {
		c.read(rules, search, one)
	}
	if address := search.instance(c.module.Packages); of != nil && len(c.module.Instances) > 0 &&
		!slices.Contains(c.module.Instances, address) {
		search.add(c.found, lineOf(search.field("resources")), "", "does not read "+c.module.Instances[0],
			"read the instance with the same name and type as in the program")
	}
	return search, true
}

// noInventory rejects an inventory, and other fields that stacks do not support.
func (c programCheck) noInventory() {
	if c.metadata != nil && c.metadata.Spec.InstanceCheck != nil {
		c.metadata.AtField("spec.instanceCheck",
			"is set, but stacks do not support it: Pulumi cannot read an instance without running the program",
			"remove it; drift checks check the instance")
	}
	if c.metadata != nil && len(c.metadata.Spec.PartOfInstance) > 0 {
		c.metadata.AtField("spec.partOfInstance", "is set, but stacks do not support it",
			"remove it; use the option deletedWith in the program")
	}
	if c.metadata != nil && len(c.metadata.Spec.BrokenStates) > 0 {
		c.metadata.AtField("spec.brokenStates",
			"is set, but stacks do not support it: Pulumi continues with an instance whose create was interrupted", "remove it")
	}
	if c.metadata != nil && c.metadata.Spec.Inventory != nil {
		c.metadata.AtField("spec.inventory", "is set, but stacks have no inventory", "remove it")
	}
	for _, folder := range []string{contract.InventoryFolder, contract.CapacityFolder} {
		if file := searchFile(folder); c.files[file] != nil {
			c.found.Add(contract.Breach{File: file, Problem: "exists, but stacks have no " + folder, Fix: "remove it"})
		}
	}
}

// types returns the types of a program's resources, as reported with and without a bridge, or nil
// if unknown.
func (p *program) types() map[string]bool {
	if p == nil || !p.isYAML() {
		return nil
	}
	types := map[string]bool{}
	for _, one := range p.resources {
		types[typeOf(one.typ, true)], types[typeOf(one.typ, false)] = true, true
	}
	return types
}

// read checks one resource of a search.
func (c programCheck) read(rules searchRules, p *program, one programResource) {
	what := "resources." + one.name
	if strings.HasPrefix(one.typ, providerTypePrefix) {
		return
	}
	get := fieldOf(one.fields, "get")
	if get == nil {
		p.add(c.found, one.line, what, "would be created", "add get: "+rules.title+" only reads")
		return
	}
	for _, name := range []string{module.VariableProviderSpec, module.VariableUserData} {
		if at := mention(get.value, name); at > 0 {
			p.add(c.found, at, what+".get", "refers to "+name+", "+rules.changed,
				"use "+rules.from+", or the result of a function")
		}
	}
	var options []yamlField
	if field := fieldOf(one.fields, "options"); field != nil {
		options = fieldsOf(field.value)
	}
	parameterized := func(pinned module.Package) bool {
		return pinned.Name == packageOf(one.typ) && pinned.Plugin != pinned.Name
	}
	if slices.ContainsFunc(c.module.Packages, parameterized) && fieldOf(options, "provider") == nil {
		p.add(c.found, one.line, what, "has no explicit provider, so Pulumi would look for a plugin with its package's name",
			"add a resource of the type "+providerTypePrefix+packageOf(one.typ)+", and name it in options.provider")
	}
}

// mention returns the line of the first reference to a name below a node, or 0.
func mention(node *yamlnode.Node, name string) int {
	if node.Kind == yamlnode.ScalarNode && (strings.Contains(node.Value, "${"+name+".") ||
		strings.Contains(node.Value, "${"+name+"}") || strings.Contains(node.Value, "${"+name+"[")) {
		return node.Line
	}
	for _, inner := range node.Content {
		if at := mention(inner, name); at > 0 {
			return at
		}
	}
	return 0
}
