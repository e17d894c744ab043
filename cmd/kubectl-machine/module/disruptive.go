package module

import (
	"context"
	"fmt"

	tfjson "github.com/hashicorp/terraform-json"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/contract"
)

// checkDisruptive compares spec.disruptive with the schemas of the module's providers: a misspelled
// attribute would disrupt instances unnoticed. Packages of a stack have no schema here.
func (w *work) checkDisruptive(ctx context.Context) error {
	declared := w.module.loaded.Spec().Disruptive
	if len(declared) == 0 || !w.module.loaded.Traits().HCL {
		return nil
	}
	schemas, err := w.terraform.ProvidersSchema(ctx)
	if err != nil {
		return err
	}
	for i, entry := range declared {
		for _, name := range entry.Attributes {
			if !hasAttribute(schemas, entry.Type, name) {
				w.module.add(contract.Breach{
					File: module.MetadataFile, What: fmt.Sprintf("spec.disruptive[%d]", i),
					Problem: fmt.Sprintf("names %s, which is no attribute or block of %s",
						name, entry.Type), Fix: "correct it, or remove it",
				})
			}
		}
	}
	return nil
}

func hasAttribute(schemas *tfjson.ProviderSchemas, resourceType, name string) bool {
	for _, provider := range schemas.Schemas {
		if resource := provider.ResourceSchemas[resourceType]; resource != nil && resource.Block != nil {
			return resource.Block.Attributes[name] != nil || resource.Block.NestedBlocks[name] != nil
		}
	}
	return false
}
