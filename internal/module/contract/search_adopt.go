package contract

import (
	"fmt"
	"path"
	"strings"

	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// adoptType is the type of the variable "adopt".
var adoptType = cty.Object(map[string]cty.Type{
	// The Machine's spec.providerID, "" where it has none.
	"provider_id": cty.String,
	// The ID that a user has named, "" where nobody has. It wins over the one in provider_id.
	"id": cty.String,
})

const adoptTypeText = "object({ provider_id = string, id = string })"

// checkAdopt checks what only adopt/ has: its variable, and the checks that say what differs.
func (c searchCheck) checkAdopt(first string, blocks map[string][]*hclsyntax.Block) {
	c.one(path.Join(c.folder, c.file), first, "variable", module.VariableAdopt, blocks["variable"])
	for _, block := range blocks["variable"] {
		if strings.Join(block.Labels, " ") == module.VariableAdopt {
			c.checkAdoptVariable(block)
		}
	}
	for _, block := range blocks["check"] {
		for _, inner := range block.Body.Blocks {
			if inner.Type == "data" {
				checkServed(inner, c.required, c.found)
			}
		}
	}
}

// checkAdoptVariable checks the variable that says which instance is adopted.
func (c searchCheck) checkAdoptVariable(block *hclsyntax.Block) {
	readDescription(block, c.found)
	attribute := block.Body.Attributes["type"]
	if attribute == nil {
		c.found.At(block.Range(), Title(block), "has no type", "write type = "+adoptTypeText)
		return
	}
	constraint, diags := typeexpr.TypeConstraint(attribute.Expr)
	if diags.HasErrors() || !constraint.Equals(adoptType) {
		c.found.At(attribute.Range(), Title(block), "has another type than the contract's", "write type = "+adoptTypeText)
	}
	for name, attribute := range block.Body.Attributes {
		if name != "type" && name != "description" {
			c.found.At(attribute.Range(), Title(block), "has the argument "+name, "remove it: the operator always sets both fields")
		}
	}
	for _, inner := range block.Body.Blocks { // the Machine would be Failed for good, as by any other input that is refused
		c.found.At(inner.Range(), Title(block), "has a "+inner.Type, "write a postcondition in the data source that finds the instance")
	}
}

// one checks that there is one block of a type, with one name. Of files, where is one to add it to, and first the first that there is.
func (c searchCheck) one(where, first, blockType, name string, blocks []*hclsyntax.Block) {
	seen := false
	for _, block := range blocks {
		switch {
		case strings.Join(block.Labels, " ") != name:
			c.found.At(block.Range(), Title(block), "is not part of the contract", fmt.Sprintf("remove it; the one %s of %s/ is %q", blockType, c.folder, name))
		case seen:
			c.found.At(block.Range(), Title(block), "is declared a second time", "keep one")
		default:
			seen = true
		}
	}
	if !seen {
		c.found.Add(Breach{File: first, What: fmt.Sprintf("%s %q", blockType, name), Problem: "is missing", Fix: "declare it in " + where})
	}
}

// enumerate writes names as a list for people.
func enumerate(names []string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
