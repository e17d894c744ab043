package contract

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// builtInType is the resource type that a new module starts with. It has no object that could be
// found.
const builtInType = "terraform_data"

// checkSearch rejects a search whose result does not depend on the infrastructure: an interrupted
// create would look as if it had created nothing.
func (c searchCheck) checkSearch(block *hclsyntax.Block) {
	attribute := block.Body.Attributes["for_each"]
	if attribute == nil || slices.Contains(c.instances, builtInType+"."+instanceName) {
		return
	}
	if !c.asks(attribute.Expr, map[string]bool{}) {
		c.found.At(attribute.Range(), Title(block), "searches nothing: it reads no data source",
			"refer to the results of a data source in for_each")
	}
}

// asks reports whether an expression refers to anything but constants, including through locals of
// the search.
func (c searchCheck) asks(expression hclsyntax.Expression, seen map[string]bool) bool {
	for _, traversal := range expression.Variables() {
		parts := strings.Split(address(traversal), ".")
		if parts[0] != "local" || len(parts) < 2 {
			return true
		}
		if seen[parts[1]] {
			continue
		}
		seen[parts[1]] = true
		value := c.local(parts[1])
		if value == nil || c.asks(value, seen) { // a local of the module may depend on anything
			return true
		}
	}
	return false
}

// local returns the expression of a local of the search, or nil.
func (c searchCheck) local(name string) hclsyntax.Expression {
	for _, file := range c.files.Names(searchHCL(c.folder)) {
		body := ParseHCL(c.files[file], file, &Report{}) // errors are reported where the file is checked
		if body == nil {
			continue
		}
		for _, block := range body.Blocks {
			if attribute := block.Body.Attributes[name]; block.Type == "locals" && attribute != nil {
				return attribute.Expr
			}
		}
	}
	return nil
}
