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

// ConfigLocals is the name under which a stack's program gets the values of its locals.
const ConfigLocals = "locals"

// localsRoot is what references to locals begin with.
const localsRoot = "local"

// Local is a value of a stack that is computed from variables before a run.
type Local struct {
	// Name is the local's name.
	Name string
	// Expression refers to variables and to other locals.
	Expression hclsyntax.Expression
	// Range is where the local is in the module.
	Range hcl.Range
}

// localVariables are the variables that locals may refer to: what is computed reaches the program in plain text.
var localVariables = []string{VariableMachine, VariableProviderSpec, VariableCluster}

// Locals evaluates the locals of a stack for the variables of a run, the JSON object that internal/render makes, and returns them as a JSON
// object by name; nil where there are none. Nothing of user data is in it.
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

// LocalError says that a local of a stack has no value for the variables at hand.
type LocalError struct {
	// Stack is the stack's name, Local the local's.
	Stack, Local string
	// Range is where the local is.
	Range hcl.Range
	// Reason says in few words what failed. It quotes nothing of the variables.
	Reason string
	// Detail says more, and may quote the variables.
	Detail string
	// Limit is the limit that has ended the evaluation; nil where something else failed.
	Limit *hclfuncs.LimitError
	// References are what the local depends on of the variables, directly or through other locals.
	References []hcl.Traversal
}

// Error implements error. It leaves out the detail, which may show a secret.
func (e *LocalError) Error() string {
	reason := e.Reason
	if e.Limit != nil {
		reason = e.Limit.Error()
	}
	return fmt.Sprintf("the stack %q cannot compute local.%s (%s:%d): %s", e.Stack, e.Local, e.Range.Filename, e.Range.Start.Line, reason)
}

// EvalLocals evaluates the locals of a stack for values of the variables by name, which may be unknown in part. The error is a
// [*LocalError].
func (m *Module) EvalLocals(variables map[string]cty.Value) (map[string]cty.Value, error) {
	context := LocalContext(variables)
	values := map[string]cty.Value{}
	for _, one := range m.definition.Locals {
		value, diags := one.Value(context, values)
		if diags.HasErrors() {
			return nil, &LocalError{
				Stack: m.definition.Name, Local: one.Name, Range: one.Range, Reason: strings.TrimSuffix(oneLine(diags[0].Summary), "."),
				Detail: oneLine(diags[0].Detail), Limit: hclfuncs.BudgetOf(context).Exceeded(), References: m.dependencies(one),
			}
		}
		values[one.Name] = value
	}
	return values, nil
}

// dependencies returns what a local depends on of the variables. Locals come after those that they refer to.
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
		references = append(references, slices.DeleteFunc(one.Expression.Variables(), func(r hcl.Traversal) bool { return ReferencedVariable(r) == "" })...)
	}
	return references
}

// declares reports whether the module has a variable.
func (m *Module) declares(name string) bool {
	_, declared := m.definition.Variables[name]
	return declared
}

// decodeVariables returns the variables that locals may refer to.
func (m *Module) decodeVariables(raw []byte) (map[string]cty.Value, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, errors.New("the variables are no JSON object")
	}
	decoded := map[string]cty.Value{}
	for _, name := range localVariables {
		if !m.declares(name) {
			continue
		}
		value, err := ctyjson.Unmarshal(fields[name], m.definition.Variables[name].Type.WithoutOptionalAttributesDeep())
		if err != nil {
			return nil, fmt.Errorf("the variable %s is not of its type", name)
		}
		decoded[name] = value
	}
	return decoded, nil
}

// LocalContext returns what locals are evaluated in, without those that are evaluated before.
func LocalContext(variables map[string]cty.Value) *hcl.EvalContext {
	visible := map[string]cty.Value{}
	for _, name := range localVariables {
		if value, declared := variables[name]; declared {
			visible[name] = value
		}
	}
	return EvalContext(visible)
}

// Value evaluates one local, with the values of those that it refers to.
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

// ReferencedLocal returns the name of the local that a reference leads to; "" when it leads elsewhere.
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
