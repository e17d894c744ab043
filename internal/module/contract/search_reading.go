package contract

import (
	"fmt"
	"path"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// clusterField is the field of the variable "machine" that all Machines of a cluster share.
const clusterField = "cluster_id"

// readingRoots are what a search that only reads may refer to besides variables. A resource of the
// module belongs to one Machine, and does not exist where the search is planned.
var readingRoots = map[string]bool{"data": true, "local": true, "each": true, "count": true, "self": true}

// checkReading checks what only inventory/ and capacity/ have: an output, and that it is the same
// whichever Machine requests it.
func (c searchCheck) checkReading(first string, blocks map[string][]*hclsyntax.Block) {
	c.one(path.Join(c.folder, c.file), first, "output", c.output, blocks["output"])
	for _, block := range blocks["output"] {
		checkOutput(block, c.found)
		if sensitive, ok := literalBool(block.Body.Attributes["sensitive"]); !ok || sensitive {
			c.found.At(block.Range(), Title(block), "is sensitive, so the operator cannot read it", "remove sensitive")
		}
	}
	for _, blockType := range c.blocks {
		for _, block := range blocks[blockType] {
			c.checkReferences(block, block.Body)
		}
	}
}

// checkReferences checks the references in the arguments of a block.
func (c searchCheck) checkReferences(block *hclsyntax.Block, body *hclsyntax.Body) {
	for name, attribute := range body.Attributes {
		if name == "provider" && block.Type == "data" {
			continue
		}
		for _, traversal := range attribute.Expr.Variables() {
			if !readingRoots[traversal.RootName()] && !ofCluster(traversal) {
				c.found.At(attribute.Range(), Title(block), fmt.Sprintf("refers to %s in %s", address(traversal), name),
					"use var.machine.cluster_id, var.provider_spec and var.cluster, which do not depend on the Machine")
			}
		}
	}
	for _, inner := range body.Blocks {
		c.checkReferences(block, inner.Body)
	}
}

// ofCluster reports whether a reference points to a variable, or a field of one, that the Machines
// of a cluster may share.
func ofCluster(reference hcl.Traversal) bool {
	switch module.ReferencedVariable(reference) {
	case module.VariableProviderSpec, module.VariableCluster:
		return true
	case module.VariableMachine:
		if len(reference) < 3 {
			return false
		}
		step, ok := reference[2].(hcl.TraverseAttr)
		return ok && step.Name == clusterField
	default:
		return false
	}
}
