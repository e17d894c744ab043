package preview

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/plan/offline"
)

// Planners is a [Planner] that dispatches to the planner of each engine.
type Planners map[v1alpha1.Engine]Planner

// Plan implements [Planner].
func (p Planners) Plan(ctx context.Context, m offline.Module, inputs []offline.Input) []offline.Outcome {
	if planner, ok := p[m.Engine]; ok {
		return planner.Plan(ctx, m, inputs)
	}
	outcomes := make([]offline.Outcome, len(inputs))
	for n := range outcomes {
		outcomes[n].Err = fmt.Errorf("there is no planner for the engine %s", m.Engine)
	}
	return outcomes
}

// ModuleOf converts a module for a planner.
func ModuleOf(from *module.Module) offline.Module {
	return offline.Module{
		Engine: from.Engine(), Files: from.Files(), Environment: environmentOf(from),
		Locals: func(in offline.Input) (values, unknown any, err error) { return localsOf(from, in) },
	}
}

// localsOf evaluates a stack's locals as a run does, with unknown values.
func localsOf(stack *module.Module, in offline.Input) (values, unknown any, err error) {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(in.Variables, &raw); err != nil {
		return nil, nil, errors.New("reading the variables: they are no JSON object")
	}
	variables := map[string]cty.Value{}
	for _, name := range []string{module.VariableMachine, module.VariableProviderSpec, module.VariableCluster} {
		if _, given := raw[name]; !given {
			continue
		}
		value, err := ctyjson.Unmarshal(raw[name], stack.Variable(name).Type.WithoutOptionalAttributesDeep())
		if err != nil {
			return nil, nil, fmt.Errorf("reading the variables: %s is not of its type", name)
		}
		variables[name] = value
	}
	variables[module.VariableMachine] = withUnknown(variables[module.VariableMachine], in.Unknown)
	locals, err := stack.EvalLocals(variables)
	if err != nil || len(locals) == 0 {
		return nil, nil, err
	}
	values, unknown = splitValue(cty.ObjectVal(locals))
	return values, unknown, nil
}

// withUnknown returns machine with its unknown attributes marked.
func withUnknown(machine cty.Value, unknown offline.Unknown) cty.Value {
	fields := machine.AsValueMap()
	text := cty.UnknownVal(cty.String).RefineNotNull()
	if unknown.Name {
		fields["name"] = text.Refine().StringPrefixFull(unknown.NamePrefix).NewValue()
	}
	if unknown.UID {
		fields["uid"] = text
	}
	if unknown.ClusterID {
		fields["cluster_id"] = text
	}
	return cty.ObjectVal(fields)
}

// splitValue returns a decoded JSON value, and the marks of its unknown parts: true in place of each.
func splitValue(value cty.Value) (known, unknown any) {
	of := value.Type()
	switch {
	case !value.IsKnown(), of.IsSetType() && !value.IsWhollyKnown(): // what is in a set depends on what is equal
		return nil, true
	case value.IsNull():
		return nil, nil
	case of == cty.String:
		return value.AsString(), nil
	case of == cty.Number:
		return json.Number(value.AsBigFloat().Text('f', -1)), nil
	case of == cty.Bool:
		return value.True(), nil
	case of.IsObjectType() || of.IsMapType():
		object, marks := map[string]any{}, map[string]any{}
		for name, inner := range value.AsValueMap() {
			object[name], marks[name] = splitValue(inner)
		}
		return object, marks
	}
	list, marks := []any{}, []any{}
	for _, inner := range value.AsValueSlice() {
		one, mark := splitValue(inner)
		list, marks = append(list, one), append(marks, mark)
	}
	return list, marks
}

// placeholder replaces credentials. No plan sees it.
const placeholder = "unknown"

// environmentOf returns the environment in which the module's providers return their schemas. Each credential has a
// placeholder, since some arguments are required unless an environment variable is set.
func environmentOf(served *module.Module) map[string]string {
	environment := served.Constants()
	if credentials := served.Spec().Credentials; credentials != nil {
		for _, key := range credentials.Keys {
			environment[cmp.Or(key.Env, key.File)] = placeholder
		}
	}
	return environment
}
