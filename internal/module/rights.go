package module

import (
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
)

// Right is permissions that the credentials must have where a condition holds.
type Right struct {
	v1alpha1.ModuleRights
	// Condition returns a bool, of what [LocalContext] has; nil for permissions that are always needed.
	Condition hclsyntax.Expression
}

// Rights returns the permissions that the credentials certainly must have for values of the variables by name, which may be unknown in part. A
// condition that depends on what is not known, or cannot be evaluated for these values, does not count.
func (m *Module) Rights(variables map[string]cty.Value) []v1alpha1.ModuleRights {
	context := LocalContext(variables)
	var needed []v1alpha1.ModuleRights
	for _, right := range m.definition.Rights {
		if right.Condition != nil {
			result, diags := right.Condition.Value(context)
			if diags.HasErrors() {
				continue
			}
			held, err := convert.Convert(result, cty.Bool)
			if err != nil || !held.IsKnown() || held.IsNull() || held.False() {
				continue
			}
		}
		needed = append(needed, right.ModuleRights)
	}
	return needed
}
