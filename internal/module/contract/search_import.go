package contract

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// importRoots are what the id of an import block may refer to besides some variables: facts that hold although the providerSpec has changed
// since the instance was made.
var importRoots = map[string]bool{"data": true, "local": true, "each": true}

// checkImport checks one import block, and reports whether it imports the instance.
func (c searchCheck) checkImport(block *hclsyntax.Block) bool {
	for _, name := range []string{"id", "for_each"} {
		c.checkImportArgument(block, name)
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

// checkImportArgument checks what the id or for_each of an import block refers to.
func (c searchCheck) checkImportArgument(block *hclsyntax.Block, name string) {
	roots := make([]string, 0, len(c.variables))
	for _, variable := range c.variables {
		roots = append(roots, "var."+variable)
	}
	attribute := block.Body.Attributes[name]
	if attribute == nil {
		if name == "id" {
			c.found.At(block.Range(), Title(block), "has no id", "add id = ... made from "+roots[0])
		}
		return
	}
	for _, traversal := range attribute.Expr.Variables() {
		if !importRoots[traversal.RootName()] && !slices.Contains(c.variables, module.ReferencedVariable(traversal)) {
			c.found.At(attribute.Range(), Title(block), fmt.Sprintf("refers to %s in %s", traversal.RootName(), name),
				"make ids from "+strings.Join(roots, " and ")+", or from data sources and locals")
		}
	}
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
