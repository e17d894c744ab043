package module

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/machine-iac/machine-iac-operator/internal/module/hclfuncs"
)

// ConfigLocals is the configuration key under which a stack's program gets its locals.
const ConfigLocals = "locals"

// localsRoot starts references to locals.
const localsRoot = "local"

// Local is a value of a stack that is computed from variables before a run.
type Local struct {
	// Name is the local's name.
	Name string
	// Expression may refer to variables and to other locals.
	Expression hclsyntax.Expression
	// Range of the local in the module.
	Range hcl.Range
}

// localVariables are the variables that locals may refer to. The program gets the result in plain
// text.
var localVariables = []string{VariableMachine, VariableProviderSpec, VariableCluster, VariableRecorded}

// Locals evaluates the locals of a stack and returns them as a JSON object, or nil if there are
// none. variables is the JSON object from package render. The result contains no user data.
func (m *Module) Locals(variables []byte) ([]byte, error) {
	if len(m.definition.Locals) == 0 {
		return nil, nil
	}
	known, err := m.decodeVariables(variables)
	if err != nil {
		return nil, fmt.Errorf("evaluating the locals of the stack %q: %w", m.definition.Name, err)
	}
	values, err := m.EvalLocals(known)
	if err != nil {
		return nil, err
	}
	object := cty.ObjectVal(values)
	raw, err := ctyjson.Marshal(object, object.Type())
	if err != nil {
		return nil, fmt.Errorf("encoding the locals of the stack %q: %w", m.definition.Name, err)
	}
	return raw, nil
}

// LocalError means that a local of a stack cannot be evaluated for the given variables.
type LocalError struct {
	// Stack is the stack's name, and Local the local's.
	Stack, Local string
	// Range of the local.
	Range hcl.Range
	// Reason is a short description. It quotes no values of variables.
	Reason string
	// Detail is a longer description, which may quote values of variables.
	Detail string
	// Limit is the limit that was exceeded, or nil.
	Limit *hclfuncs.LimitError
	// References are the references to variables that the local depends on, directly or through other
	// locals.
	References []hcl.Traversal
}

// Error implements error. It omits the detail, which may contain a secret.
func (e *LocalError) Error() string {
	reason := e.Reason
	if e.Limit != nil {
		reason = e.Limit.Error()
	}
	return fmt.Sprintf("the stack %q cannot compute local.%s (%s:%d): %s", e.Stack, e.Local, e.Range.Filename,
		e.Range.Start.Line, reason)
}

// EvalLocals evaluates the locals of a stack. The variables may be partly unknown. Errors are
// [*LocalError].
func (m *Module) EvalLocals(variables map[string]cty.Value) (map[string]cty.Value, error) {
	context := LocalContext(variables)
	values := map[string]cty.Value{}
	for _, one := range m.definition.Locals {
		value, diags := one.Value(context, values)
		if diags.HasErrors() {
			return nil, &LocalError{
				Stack: m.definition.Name, Local: one.Name, Range: one.Range, Reason: strings.TrimSuffix(oneLine(diags[0].Summary),
					"."),
				Detail: oneLine(diags[0].Detail), Limit: hclfuncs.BudgetOf(context).Exceeded(), References: m.dependencies(one),
			}
		}
		values[one.Name] = value
	}
	return values, nil
}

// dependencies returns the references to variables that a local depends on. Locals are sorted after
// those that they refer to.
func (m *Module) dependencies(of Local) []hcl.Traversal {
	var references []hcl.Traversal
	wanted := map[string]bool{of.Name: true}
	for _, one := range slices.Backward(m.definition.Locals) {
		if !wanted[one.Name] {
			continue
		}
		for _, name := range one.References() {
			wanted[name] = true
		}
		references = append(references, slices.DeleteFunc(one.Expression.Variables(),
			func(r hcl.Traversal) bool { return ReferencedVariable(r) == "" })...)
	}
	return references
}

// declares reports whether the module declares a variable.
func (m *Module) declares(name string) bool {
	_, declared := m.definition.Variables[name]
	return declared
}

// decodeVariables returns the variables that locals may refer to.
func (m *Module) decodeVariables(raw []byte) (map[string]cty.Value, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, errors.New("the variables are not a JSON object")
	}
	decoded := map[string]cty.Value{}
	for _, name := range localVariables {
		if !m.declares(name) || name == VariableRecorded && fields[name] == nil {
			continue
		}
		value, err := ctyjson.Unmarshal(fields[name], m.definition.Variables[name].Type.WithoutOptionalAttributesDeep())
		if err != nil {
			return nil, fmt.Errorf("the value of variable %s does not match its type", name)
		}
		decoded[name] = value
	}
	return decoded, nil
}

// LocalContext returns the evaluation context for locals, without the values of other locals.
func LocalContext(variables map[string]cty.Value) *hcl.EvalContext {
	// recorded is null unless given, as before there is an instance.
	visible := map[string]cty.Value{VariableRecorded: cty.NullVal(cty.DynamicPseudoType)}
	for _, name := range localVariables {
		if value, declared := variables[name]; declared {
			visible[name] = value
		}
	}
	return EvalContext(visible)
}

// Value evaluates one local, given the values of the locals that it refers to.
func (l Local) Value(context *hcl.EvalContext, before map[string]cty.Value) (cty.Value, hcl.Diagnostics) {
	own := context.NewChild()
	own.Variables = map[string]cty.Value{localsRoot: cty.ObjectVal(before)}
	return l.Expression.Value(own)
}

// References returns the names of the locals that the local refers to, in order.
func (l Local) References() []string {
	var names []string
	for _, reference := range l.Expression.Variables() {
		if name := ReferencedLocal(reference); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// ReferencedLocal returns the name of the local that a reference points to, or "".
func ReferencedLocal(reference hcl.Traversal) string {
	if len(reference) < 2 || reference.IsRelative() || reference.RootName() != localsRoot {
		return ""
	}
	if step, ok := reference[1].(hcl.TraverseAttr); ok {
		return step.Name
	}
	return ""
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
