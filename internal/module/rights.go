package module

import (
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
)

// Right is a set of permissions that the credentials need under a condition.
type Right struct {
	v1alpha1.ModuleRights
	// Condition returns a bool and may use what [LocalContext] contains. Nil means always.
	Condition hclsyntax.Expression
}

// Rights returns the permissions that the credentials certainly need for values of the variables,
// which may be partly unknown. It skips conditions that depend on unknown values or cannot be
// evaluated.
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
