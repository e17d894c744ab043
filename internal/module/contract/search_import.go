package contract

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// importRoots are what the ID of an import block may refer to besides some variables: facts that
// hold even if the providerSpec has changed since the instance was created.
var importRoots = map[string]bool{"data": true, "local": true, "each": true}

// checkImport checks an import block. It returns the address of the instance if the block imports
// it.
func (c searchCheck) checkImport(block *hclsyntax.Block) string {
	for _, name := range []string{"id", "for_each"} {
		c.checkImportArgument(block, name)
	}
	attribute := block.Body.Attributes["to"]
	if attribute == nil {
		c.found.At(block.Range(), Title(block), "has no target", "add to = "+strings.Join(c.instances, " or "))
		return ""
	}
	if isOneOfEach(attribute.Expr) {
		return ""
	}
	target, diags := hcl.AbsTraversalForExpr(attribute.Expr)
	if diags.HasErrors() {
		c.found.At(attribute.Range(), Title(block), "has a target that is not the address of a single resource",
			"write to = type.name, or type.name[each.key]")
		return ""
	}
	found := address(target)
	if !slices.Contains(c.instances, found) {
		return ""
	}
	c.checkSearch(block)
	return found
}

// checkImportArgument checks the references in the id or for_each of an import block.
func (c searchCheck) checkImportArgument(block *hclsyntax.Block, name string) {
	roots := make([]string, 0, len(c.variables))
	for _, variable := range c.variables {
		roots = append(roots, "var."+variable)
	}
	attribute := block.Body.Attributes[name]
	if attribute == nil {
		if name == "id" {
			c.found.At(block.Range(), Title(block), "has no id", "add id = ... based on "+roots[0])
		}
		return
	}
	for _, traversal := range attribute.Expr.Variables() {
		if !importRoots[traversal.RootName()] && !slices.Contains(c.variables, module.ReferencedVariable(traversal)) {
			c.found.At(attribute.Range(), Title(block), fmt.Sprintf("refers to %s in %s", traversal.RootName(), name),
				"base IDs on "+strings.Join(roots, " and ")+", or from data sources and locals")
		}
	}
}

// isOneOfEach reports whether a target is one of several instances of a resource,
// type.name[each.key]. The Machine's instance never is.
func isOneOfEach(target hclsyntax.Expression) bool {
	index, ok := target.(*hclsyntax.IndexExpr)
	if !ok {
		return false
	}
	_, diags := hcl.AbsTraversalForExpr(index.Collection)
	key, keyDiags := hcl.AbsTraversalForExpr(index.Key)
	return !diags.HasErrors() && !keyDiags.HasErrors() && address(key) == "each.key"
}

// address renders a traversal of names, optionally ending with index 0, as an address. Any other
// step gives an address that matches nothing.
func address(traversal hcl.Traversal) string {
	parts := make([]string, 0, len(traversal))
	for _, step := range traversal {
		switch step := step.(type) {
		case hcl.TraverseRoot:
			parts = append(parts, step.Name)
		case hcl.TraverseAttr:
			parts = append(parts, step.Name)
		case hcl.TraverseIndex:
			parts = append(parts, indexOf(step))
		default:
			parts = append(parts, "[]")
		}
	}
	return strings.ReplaceAll(strings.Join(parts, "."), ".[0]", "[0]")
}

// indexOf renders the index 0, that of a resource with a count, and no other.
func indexOf(step hcl.TraverseIndex) string {
	if step.Key.Type() == cty.Number && step.Key.RawEquals(cty.Zero) {
		return "[0]"
	}
	return "[]"
}
