package render

import (
	"errors"
	"fmt"

	"github.com/zclconf/go-cty/cty"

	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// Variables returns the variables of [Render], for a Machine that [Check] has found nothing wrong with. What the Machine does not have
// yet is empty; neither Secrets nor validations, which may depend on that, are looked at. The error is an [Errors] when the Machine is
// at fault; any other error is a mistake of the caller.
func Variables(input Input) ([]byte, error) {
	if input.Machine == nil || input.Module == nil {
		return nil, errors.New("rendering variables: a Machine and a module are required")
	}
	found := &findings{under: input.Under}
	read := readSpec(input.Machine, input.Module, found)
	values := map[string]cty.Value{
		module.VariableMachine:      renderMachine(input),
		module.VariableProviderSpec: read.provides(input.Module, found),
		module.VariableUserData:     renderUserData(input, read.userData.path, found),
	}
	if err := addCluster(values, input); err != nil {
		return nil, fmt.Errorf("rendering variables: %w", err)
	}
	if err := found.err(); err != nil {
		return nil, err
	}
	if applied, err := withAddresses(input, values[module.VariableProviderSpec]); err == nil {
		values[module.VariableProviderSpec] = applied
	}
	variables, err := marshalVariables(values)
	if err != nil {
		return nil, fmt.Errorf("rendering variables: %w", err)
	}
	return variables, nil
}
