package contract

import (
	"path"
	"slices"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// searchRules are the differences between the folders of searches.
type searchRules struct {
	// folder contains the search, file is the file to add if it is empty, and title is its name in
	// messages.
	folder, file, title string
	// declared reports whether module.yaml declares the search.
	declared func(spec v1alpha1.ModuleSpec) bool
	// blocks are the allowed types of blocks. refused has the problem and the fix for some of the
	// others.
	blocks  []string
	refused map[string][2]string
	// variables are those that the ID of an import may refer to.
	variables []string
	// output is what a search that only reads returns. optional means that the field of module.yaml
	// does not require the folder.
	output   string
	optional bool
}

var searches = []searchRules{
	{
		folder: LookupFolder, file: "import.tf", title: "a lookup",
		declared: func(spec v1alpha1.ModuleSpec) bool { return spec.Lookup != nil },
		blocks:   []string{"import", "data", "locals"},
		refused: map[string][2]string{"check": {"only warns, and the import goes on",
			"use a postcondition in the data source"}},
		variables: []string{module.VariableMachine},
	},
	{
		folder: AdoptFolder, file: "import.tf", title: "an adoption",
		declared:  func(spec v1alpha1.ModuleSpec) bool { return spec.Adopt != nil },
		blocks:    []string{"import", "data", "locals", "check", "variable"},
		variables: []string{module.VariableAdopt, module.VariableMachine},
	},
	{
		folder: InventoryFolder, file: "inventory.tf", title: "an inventory",
		declared: func(spec v1alpha1.ModuleSpec) bool { return spec.Inventory != nil },
		blocks:   []string{"data", "locals", "output"},
		refused:  map[string][2]string{"import": {"adds something to the state", "remove it: an inventory only lists"}},
		output:   module.OutputInventory,
	},
	{
		folder: CapacityFolder, file: "capacity.tf", title: "a search for a size", optional: true,
		declared: func(spec v1alpha1.ModuleSpec) bool { return spec.Capacity != nil },
		blocks:   []string{"data", "locals", "output"},
		refused:  map[string][2]string{"import": {"adds something to the state", "remove it: nothing is made"}},
		output:   module.OutputCapacity,
	},
}

// imports reports whether the search imports the instance into the state.
func (r searchRules) imports() bool { return slices.Contains(r.blocks, "import") }

// field returns the field of module.yaml that goes with the folder.
func (r searchRules) field() string { return "spec." + r.folder }

// searchCheck contains what the rules of a search need to know about the module.
type searchCheck struct {
	searchRules

	files     module.Files
	metadata  *Metadata
	required  map[string]requirement
	instances []string
	found     *Report
}

// check checks the folder.
func (c searchCheck) check() {
	names := c.files.Names(searchHCL(c.folder))
	c.checkDeclared(names)
	if len(names) == 0 {
		return
	}
	blocks := c.blocksOf(names)
	imported := map[string]bool{}
	for _, block := range blocks["import"] {
		imported[c.checkImport(block)] = true
	}
	for _, address := range c.instances {
		if c.imports() && !imported[address] {
			c.found.Add(Breach{File: names[0], Problem: "does not import anything to " + address,
				Fix: "add import { to = " + address + ", id = ... }"})
		}
	}
	for _, block := range blocks["data"] {
		checkServed(block, c.required, c.found)
	}
	if c.folder == AdoptFolder {
		c.checkAdopt(names[0], blocks)
	}
	if c.output != "" {
		c.checkReading(names[0], blocks)
	}
}

// checkDeclared checks that the folder and the field of module.yaml are both there or both missing.
func (c searchCheck) checkDeclared(names []string) {
	switch declared := c.metadata != nil && c.declared(c.metadata.Spec); {
	case declared && len(names) == 0 && !c.optional:
		c.metadata.AtField(c.field(), "is set, but "+c.folder+"/ has no .tf file",
			"add "+path.Join(c.folder, c.file)+", or remove "+c.field())
	case !declared && c.metadata != nil && len(names) > 0:
		c.found.Add(Breach{File: names[0], Problem: "exists, but module.yaml has no " + c.field(),
			Fix: "add " + c.field() + ": {}"})
	}
}

// blocksOf parses the files and groups the allowed blocks by type.
func (c searchCheck) blocksOf(names []string) map[string][]*hclsyntax.Block {
	sorted := map[string][]*hclsyntax.Block{}
	for _, name := range names {
		if _, taken := c.files[path.Base(name)]; taken {
			c.found.Add(Breach{File: name,
				Problem: "has the same name as a file of the module, which is linked into the same folder", Fix: "rename it"})
		}
		body := ParseHCL(c.files[name], name, c.found)
		if body == nil {
			continue
		}
		for name, attribute := range body.Attributes {
			c.found.At(attribute.Range(), name, "is outside of any block", "move it into a block, or remove it")
		}
		for _, block := range body.Blocks {
			if slices.Contains(c.blocks, block.Type) {
				sorted[block.Type] = append(sorted[block.Type], block)
				continue
			}
			reason, known := c.refused[block.Type]
			if !known {
				reason = [2]string{"does not belong in " + c.title, "use " + enumerate(c.blocks) + " only"}
			}
			c.found.At(block.Range(), Title(block), reason[0], reason[1])
		}
	}
	return sorted
}
