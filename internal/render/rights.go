package render

import (
	"github.com/zclconf/go-cty/cty"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// Rights returns the permissions that the credentials need for the Machine of an input that [Check]
// accepts. It skips conditions that depend on unknown or invalid values.
func Rights(input Input) []v1alpha1.ModuleRights {
	if len(input.Module.Spec().Rights) == 0 {
		return nil
	}
	found := &findings{}
	read := readSpec(input.Machine, input.Module, found)
	variables := map[string]cty.Value{module.VariableMachine: plannedMachine(input),
		module.VariableProviderSpec: read.provides(input.Module, found)}
	if err := addCluster(variables, input); err != nil {
		variables[module.VariableCluster] = cty.DynamicVal
	}
	return input.Module.Rights(variables)
}
