package render

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// Variables returns the variables of [Render] for a Machine that [Check] accepts. What the Machine
// does not have yet is empty. It ignores Secrets and validations, which may depend on that. The
// error is an [Errors] if the Machine is at fault; any other error is a bug in the caller.
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
	raw, err := (&variables{values: values}).marshal()
	if err != nil {
		return nil, fmt.Errorf("rendering variables: %w", err)
	}
	return raw, nil
}

// variables are the variables of a run, each encoded at most once.
type variables struct {
	// values are by name; none is marked.
	values map[string]cty.Value
	json   map[string][]byte
}

// encode returns a variable as canonical JSON: names sorted, numbers in full, every default and
// null included. It returns an error if any part is unknown.
func (v *variables) encode(name string) ([]byte, error) {
	if raw, done := v.json[name]; done {
		return raw, nil
	}
	value, known := v.values[name]
	if !known || value == cty.NilVal {
		return nil, fmt.Errorf("encoding variables: there is no %q", name)
	}
	raw, err := ctyjson.Marshal(value, value.Type())
	if err != nil {
		return nil, fmt.Errorf("encoding variables: %w", err)
	}
	if v.json == nil {
		v.json = map[string][]byte{}
	}
	v.json[name] = raw
	return raw, nil
}

// without returns the same variables with one replaced by an empty string.
func (v *variables) without(name string) *variables {
	other := &variables{values: v.values, json: maps.Clone(v.json)}
	other.json[name] = []byte(`""`)
	return other
}

// marshal returns all variables as one canonical JSON object.
func (v *variables) marshal() ([]byte, error) {
	whole := []byte{'{'}
	for i, name := range slices.Sorted(maps.Keys(v.values)) {
		raw, err := v.encode(name)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			whole = append(whole, ',')
		}
		whole = append(append(append(whole, strconv.Quote(name)...), ':'), raw...)
	}
	return append(whole, '}'), nil
}
