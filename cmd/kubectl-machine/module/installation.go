package module

import (
	"io/fs"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/contract"
)

// installationField is the attribute of the variable "cluster", and of what an inventory lists, for
// the installation that an instance belongs to.
const installationField = "installation"

// checkInstallation checks that a module with an inventory uses the operator's installation and
// lists each instance's. The operator also loads modules that do not: it reports what they list,
// and destroys none of it.
func checkInstallation(loaded *module.Module) []contract.Breach {
	names := loaded.InventoryFiles()
	if len(names) == 0 {
		return nil
	}
	var found []contract.Breach
	if declared := loaded.Variable(module.VariableCluster).Type; declared == cty.NilType ||
		!declared.HasAttribute(installationField) {
		found = append(found, contract.Breach{
			File: "variables.tf", What: `variable "cluster"`, Problem: "has no attribute " + installationField +
				", so that no instance can bear it",
			Fix: "add " + installationField + ` = optional(string, ""), and write it on the instance beside the Machine's UID`,
		})
	}
	lists := false
	for _, name := range names {
		content, err := fs.ReadFile(loaded.Files(), name)
		if err != nil {
			continue // the files are in memory
		}
		if body := contract.ParseHCL(content, name, &contract.Report{}); body != nil {
			lists = lists || hasKey(body, installationField)
		}
	}
	if !lists {
		found = append(found, contract.Breach{
			File: names[0], What: `output "` + module.OutputInventory + `"`, Problem: "lists no " + installationField +
				", so that nothing of it is ever destroyed by the operator's policy",
			Fix: "add " + installationField + " to each object: what the instance bears, or an empty string",
		})
	}
	return found
}

// hasKey reports whether an object in HCL has a literal key.
func hasKey(body *hclsyntax.Body, name string) (has bool) {
	_ = hclsyntax.VisitAll(body, func(node hclsyntax.Node) hcl.Diagnostics {
		object, ok := node.(*hclsyntax.ObjectConsExpr)
		if !ok {
			return nil
		}
		for _, item := range object.Items {
			key, diags := item.KeyExpr.Value(nil)
			has = has || !diags.HasErrors() && key.RawEquals(cty.StringVal(name))
		}
		return nil
	})
	return has
}
