package contract

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// instanceName is the name of the resource that is the instance.
const instanceName = "this"

// builtinProvider serves terraform_data. It is built into the engines, so lock files do not contain
// it.
const builtinProvider = "terraform"

// sortBlocks groups the top-level blocks of a module by type.
func sortBlocks(bodies []*hclsyntax.Body, found *Report) map[string][]*hclsyntax.Block {
	sorted := map[string][]*hclsyntax.Block{}
	for _, body := range bodies {
		for name, attribute := range body.Attributes {
			found.At(attribute.Range(), name, "is outside of any block", "move it into a block, or remove it")
		}
		for _, block := range body.Blocks {
			if block.Type == "import" {
				found.At(block.Range(), Title(block), "would import in every run",
					"move it to lookup/, which is used only after an interrupted create")
			}
			sorted[block.Type] = append(sorted[block.Type], block)
		}
	}
	return sorted
}

// checkResources checks everything that a provider serves, and returns the possible addresses of
// the instance.
func checkResources(blocks map[string][]*hclsyntax.Block, required map[string]requirement, found *Report) []string {
	for _, blockType := range []string{"resource", "data", "ephemeral"} {
		for _, block := range blocks[blockType] {
			checkServed(block, required, found)
		}
	}
	for _, block := range blocks["provider"] {
		if name := strings.Join(block.Labels, " "); name != builtinProvider {
			checkRequired(name, block, required, found)
		}
	}
	return findInstances(blocks["resource"], found)
}

func checkServed(block *hclsyntax.Block, required map[string]requirement, found *Report) {
	if len(block.Labels) != 2 {
		found.At(block.Range(), Title(block), "does not have a type and a name", "write both")
		return
	}
	checkDeletable(block, found)
	name, _, _ := strings.Cut(block.Labels[0], "_")
	if attribute := block.Body.Attributes["provider"]; attribute != nil {
		traversal, diags := hcl.AbsTraversalForExpr(attribute.Expr)
		if diags.HasErrors() || traversal.IsRelative() {
			found.At(attribute.Range(), Title(block), "has a provider argument that does not name a provider",
				"write provider = name or name.alias")
			return
		}
		name = traversal.RootName()
	}
	if name != builtinProvider {
		checkRequired(name, block, required, found)
	}
}

func checkRequired(name string, block *hclsyntax.Block, required map[string]requirement, found *Report) {
	if _, ok := required[name]; !ok {
		found.At(block.Range(), Title(block), fmt.Sprintf("uses the provider %q, which terraform.tf does not require", name),
			"add it to required_providers and to the lock file")
	}
}

func checkDeletable(block *hclsyntax.Block, found *Report) {
	for _, inner := range block.Body.Blocks {
		if attribute := inner.Body.Attributes["prevent_destroy"]; inner.Type == "lifecycle" && attribute != nil {
			found.At(attribute.Range(), Title(block), "sets prevent_destroy, so its Machine could not be deleted", "remove it")
		}
	}
}

// typesOf returns the types of resources.
func typesOf(resources []*hclsyntax.Block) map[string]bool {
	types := map[string]bool{}
	for _, block := range resources {
		if len(block.Labels) == 2 {
			types[block.Labels[0]] = true
		}
	}
	return types
}

// findInstances returns the addresses of the resources called "this": either one, which is the
// instance, or several of different types with a count, one of which is created.
func findInstances(resources []*hclsyntax.Block, found *Report) []string {
	var instances []*hclsyntax.Block
	for _, block := range resources {
		if len(block.Labels) == 2 && block.Labels[1] == instanceName {
			instances = append(instances, block)
		}
	}
	if len(instances) == 0 {
		found.Add(Breach{File: "main.tf", Problem: `has no resource called "this"`,
			Fix: "give that name to the resource that is the instance"})
		return nil
	}
	addresses := make([]string, 0, len(instances))
	for _, block := range instances {
		if attribute := block.Body.Attributes["for_each"]; attribute != nil {
			found.At(attribute.Range(), Title(block), "is the instance, but has for_each",
				"remove it: one Machine is one instance")
		}
		addresses = append(addresses, strings.Join(block.Labels, ".")+countOf(block, len(instances), found))
	}
	return addresses
}

// countOf checks the count of a resource that is the instance, and returns the index in its
// address.
func countOf(block *hclsyntax.Block, instances int, found *Report) string {
	count := block.Body.Attributes["count"]
	switch {
	case instances == 1 && count == nil:
		return ""
	case instances == 1:
		found.At(count.Range(), Title(block), "is the instance, but has count", "remove it: one Machine is one instance")
		return ""
	case count == nil:
		found.At(block.Range(), Title(block), `is one of several resources called "this", without count`,
			"use that name for the instance only, or give each a count such that one is 1 and the others are 0")
		return ""
	}
	for _, traversal := range count.Expr.Variables() {
		if root := traversal.RootName(); root != "var" && root != "local" {
			found.At(count.Range(), Title(block), "refers to "+root+" in count",
				"use only variables and locals: it must be known beforehand which resource is the instance")
		}
	}
	return "[0]"
}
