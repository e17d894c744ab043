package render

import (
	"errors"
	"fmt"

	"github.com/zclconf/go-cty/cty"

	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// Check returns the errors and warnings of [Render] before a run is possible. It does not know the
// content of Secrets, and treats what the Machine does not have yet (name, UID, cluster) as
// unknown. Whatever Check rejects, Render and [Refs] reject too, except for an invalid
// [DriftPolicy]. Of what it accepts, they reject only what depends on unknown values. The error is
// an [Errors] if the Machine is at fault; any other error is a bug in the caller.
func Check(input Input) ([]Warning, error) {
	if input.Machine == nil || input.Module == nil {
		return nil, errors.New("checking inputs: a Machine and a module are required")
	}
	found := &findings{under: input.Under}
	read := readSpec(input.Machine, input.Module, found)
	providerSpec := read.provides(input.Module, found)
	read.refs(input.Module, found)
	credentialKeys(input.Module, read.at, providerSpec, found)
	userData := cty.UnknownVal(cty.String).RefineNotNull()
	if !read.namesUserData(input.Module, providerSpec) {
		userData = cty.StringVal("")
	}
	values := map[string]cty.Value{
		module.VariableMachine: plannedMachine(input), module.VariableProviderSpec: providerSpec,
		module.VariableUserData: userData,
	}
	if err := addCluster(values, input); err != nil {
		return nil, fmt.Errorf("checking inputs: %w", err)
	}
	validate(input.Module, read, &variables{values: values}, input.Held, found)
	if _, err := DriftPolicy(input.Machine); read.values != nil {
		found.add(err)
	}
	return found.warned(), found.err()
}

// generatedPrefix is the length to which the API server truncates a generateName.
const generatedPrefix = 58

// plannedMachine returns the variable machine of a Machine that does not exist yet, as far as it is
// known.
func plannedMachine(input Input) cty.Value {
	planned := renderMachine(input).AsValueMap()
	open := cty.UnknownVal(cty.String).RefineNotNull()
	for _, name := range []string{"name", "uid", "cluster_id"} {
		if planned[name].AsString() == "" {
			planned[name] = open
		}
	}
	if begun := input.Machine.GenerateName; begun != "" && input.Machine.Name == "" {
		planned["name"] = open.Refine().StringPrefix(begun[:min(len(begun), generatedPrefix)]).NewValue()
	}
	return cty.ObjectVal(planned)
}
