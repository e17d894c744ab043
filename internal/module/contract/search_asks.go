package contract

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// builtInType is the type that a new module begins with. It makes nothing, so there is nothing to find.
const builtInType = "terraform_data"

// checkSearch refuses a search for the instance that has the same results whatever there is: a create that was cut off would be taken for
// one that made nothing.
func (c searchCheck) checkSearch(block *hclsyntax.Block) {
	attribute := block.Body.Attributes["for_each"]
	if attribute == nil || slices.Contains(c.instances, builtInType+"."+instanceName) {
		return
	}
	if !c.asks(attribute.Expr, map[string]bool{}) {
		c.found.At(attribute.Range(), Title(block), "searches nothing: no data source is read", "refer to the results of a data source in for_each")
	}
}

// asks reports whether an expression refers to anything but constants, also by way of locals of the search.
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
		if value == nil || c.asks(value, seen) { // one of the module may be made of anything
			return true
		}
	}
	return false
}

// local returns the expression of a local of the search, nil where it has none of that name.
func (c searchCheck) local(name string) hclsyntax.Expression {
	for _, file := range c.files.Names(searchHCL(c.folder)) {
		body := ParseHCL(c.files[file], file, &Report{}) // what is wrong with it is said where it is checked
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
