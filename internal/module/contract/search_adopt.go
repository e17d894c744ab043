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
	// The Machine's spec.providerID, or "".
	"provider_id": cty.String,
	// The ID that a user requested, or "". It takes precedence over the one in provider_id.
	"id": cty.String,
})

const adoptTypeText = "object({ provider_id = string, id = string })"

// checkAdopt checks what only adopt/ has: its variable, and the checks that report differences.
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

// checkAdoptVariable checks the variable that identifies the instance to adopt.
func (c searchCheck) checkAdoptVariable(block *hclsyntax.Block) {
	readDescription(block, c.found)
	attribute := block.Body.Attributes["type"]
	if attribute == nil {
		c.found.At(block.Range(), Title(block), "has no type", "write type = "+adoptTypeText)
		return
	}
	constraint, diags := typeexpr.TypeConstraint(attribute.Expr)
	if diags.HasErrors() || !constraint.Equals(adoptType) {
		c.found.At(attribute.Range(), Title(block), "has a different type than the contract requires",
			"write type = "+adoptTypeText)
	}
	for name, attribute := range block.Body.Attributes {
		if name != "type" && name != "description" {
			c.found.At(attribute.Range(), Title(block), "has the argument "+name,
				"remove it: the operator always sets both fields")
		}
	}
	for _, inner := range block.Body.Blocks { // it would fail the Machine for good, like any other rejected input
		c.found.At(inner.Range(), Title(block), "has a "+inner.Type,
			"write a postcondition in the data source that finds the instance")
	}
}

// one checks that there is exactly one block of a type, with one name. where is the file to add it
// to, and first is the first existing file.
func (c searchCheck) one(where, first, blockType, name string, blocks []*hclsyntax.Block) {
	seen := false
	for _, block := range blocks {
		switch {
		case strings.Join(block.Labels, " ") != name:
			c.found.At(block.Range(), Title(block), "is not part of the contract",
				fmt.Sprintf("remove it; the only %s of %s/ is %q", blockType, c.folder, name))
		case seen:
			c.found.At(block.Range(), Title(block), "is declared twice", "keep one")
		default:
			seen = true
		}
	}
	if !seen {
		c.found.Add(Breach{File: first, What: fmt.Sprintf("%s %q", blockType, name), Problem: "is missing",
			Fix: "declare it in " + where})
	}
}

// enumerate joins names into a list for messages.
func enumerate(names []string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
