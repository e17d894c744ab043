package render

import (
	"github.com/zclconf/go-cty/cty"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// Rights returns the permissions that the credentials must have for the Machine of an input, which [Check] has found nothing wrong with. What
// depends on values that are not known, or are wrong, is left out.
func Rights(input Input) []v1alpha1.ModuleRights {
	if len(input.Module.Spec().Rights) == 0 {
		return nil
	}
	found := &findings{}
	read := readSpec(input.Machine, input.Module, found)
	variables := map[string]cty.Value{module.VariableMachine: plannedMachine(input), module.VariableProviderSpec: read.provides(input.Module, found)}
	if err := addCluster(variables, input); err != nil {
		variables[module.VariableCluster] = cty.DynamicVal
	}
	return input.Module.Rights(variables)
}
