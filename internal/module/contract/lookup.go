package contract

import (
	"fmt"
	"path"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/snapshot"
)

// lookupCheck is what the rules of lookup/ need to know of the module.
type lookupCheck struct {
	files    snapshot.Files
	metadata *Metadata
	required map[string]requirement
	instance string
	found    *Report
}

// check checks lookup/ against the contract.
func (c lookupCheck) check() {
	names := c.files.Names(isLookupHCL)
	declared := c.metadata != nil && c.metadata.Spec.Lookup != nil
	switch {
	case declared && len(names) == 0:
		c.metadata.AtField("spec.lookup", "is set, but lookup/ has no .tf file", "add lookup/import.tf, or remove spec.lookup")
	case !declared && c.metadata != nil && len(names) > 0:
		c.found.Add(Breach{File: names[0], Problem: "is there, but module.yaml has no spec.lookup", Fix: "add spec.lookup: {}"})
	}
	importsInstance := false
	for _, name := range names {
		if _, taken := c.files[path.Base(name)]; taken {
			c.found.Add(Breach{File: name, Problem: "has the name of a file of the module, beside which it is linked", Fix: "rename it"})
		}
		if body := ParseHCL(c.files[name], name, c.found); body != nil && c.checkBody(body) {
			importsInstance = true
		}
	}
	if len(names) > 0 && !importsInstance && c.instance != "" {
		c.found.Add(Breach{File: names[0], Problem: fmt.Sprintf("imports nothing to %s", c.instance), Fix: "add import { to = " + c.instance + ", id = ... }"})
	}
}

// checkBody checks one file, and reports whether it imports the instance.
func (c lookupCheck) checkBody(body *hclsyntax.Body) bool {
	importsInstance := false
	for name, attribute := range body.Attributes {
		c.found.At(attribute.Range(), name, "is outside of any block", "move it into a block, or remove it")
	}
	for _, block := range body.Blocks {
		switch block.Type {
		case "import":
			if c.checkImport(block) {
				importsInstance = true
			}
		case "data":
			checkServed(block, c.required, c.found)
		case "locals":
		case "check":
			c.found.At(block.Range(), Title(block), "only warns, and the import goes on", "write a postcondition in the data source")
		default:
			c.found.At(block.Range(), Title(block), "does not belong into a lookup", "use import, data and locals only")
		}
	}
	return importsInstance
}

// importRoots are what the id of an import block may refer to: values that stay the same although the providerSpec has changed since
// the interrupted create.
var importRoots = map[string]bool{"data": true, "local": true, "each": true}

// checkImport checks one import block, and reports whether it imports the instance.
func (c lookupCheck) checkImport(block *hclsyntax.Block) bool {
	for _, name := range []string{"id", "for_each"} {
		attribute := block.Body.Attributes[name]
		if attribute == nil {
			if name == "id" {
				c.found.At(block.Range(), Title(block), "has no id", "add id = ... made from var.machine")
			}
			continue
		}
		for _, traversal := range attribute.Expr.Variables() {
			if !importRoots[traversal.RootName()] && !isMachine(traversal) {
				c.found.At(attribute.Range(), Title(block), fmt.Sprintf("refers to %s in %s", traversal.RootName(), name),
					"make ids from var.machine, or from data sources and locals")
			}
		}
	}
	attribute := block.Body.Attributes["to"]
	if attribute == nil {
		c.found.At(block.Range(), Title(block), "has no target", "add to = "+c.instance)
		return false
	}
	if isOneOfEach(attribute.Expr) {
		return false
	}
	target, diags := hcl.AbsTraversalForExpr(attribute.Expr)
	if diags.HasErrors() {
		c.found.At(attribute.Range(), Title(block), "has a target that is not the address of one resource", "write to = type.name, or type.name[each.key]")
		return false
	}
	if address(target) != c.instance {
		return false
	}
	c.checkSearch(block)
	return true
}

// isOneOfEach reports whether a target is one of several of a resource, type.name[each.key]. The instance is never that.
func isOneOfEach(target hclsyntax.Expression) bool {
	index, ok := target.(*hclsyntax.IndexExpr)
	if !ok {
		return false
	}
	_, diags := hcl.AbsTraversalForExpr(index.Collection)
	key, keyDiags := hcl.AbsTraversalForExpr(index.Key)
	return !diags.HasErrors() && !keyDiags.HasErrors() && address(key) == "each.key"
}

func isMachine(traversal hcl.Traversal) bool {
	if len(traversal) < 2 || traversal.RootName() != "var" {
		return false
	}
	step, ok := traversal[1].(hcl.TraverseAttr)
	return ok && step.Name == module.VariableMachine
}

// address renders a traversal of names as an address; any other step makes it an address that equals none.
func address(traversal hcl.Traversal) string {
	parts := make([]string, 0, len(traversal))
	for _, step := range traversal {
		switch step := step.(type) {
		case hcl.TraverseRoot:
			parts = append(parts, step.Name)
		case hcl.TraverseAttr:
			parts = append(parts, step.Name)
		default:
			parts = append(parts, "[]")
		}
	}
	return strings.Join(parts, ".")
}
