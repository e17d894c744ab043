package module

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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

// local is a value that is computed from variables before a run.
type local struct {
	name       string
	expression hclsyntax.Expression
	place      hcl.Range
}

// localVariables are the variables that locals may refer to: what is computed reaches the program in plain text.
var localVariables = []string{VariableMachine, VariableProviderSpec}

// Locals evaluates the locals of a stack for the variables of a run, the JSON object that internal/render makes, and answers them as a JSON
// object by name; nil where there are none. Nothing of user data is in it.
func (m *Module) Locals(variables []byte) ([]byte, error) {
	if len(m.locals) == 0 {
		return nil, nil
	}
	known, err := m.decodeVariables(variables)
	if err != nil {
		return nil, fmt.Errorf("evaluating the locals of the stack %q: %w", m.name, err)
	}
	values, err := m.EvalLocals(known)
	if err != nil {
		return nil, err
	}
	object := cty.ObjectVal(values)
	raw, err := ctyjson.Marshal(object, object.Type())
	if err != nil {
		return nil, fmt.Errorf("encoding the locals of the stack %q: %w", m.name, err)
	}
	return raw, nil
}

// LocalError says that a local of a stack has no value for the variables at hand.
type LocalError struct {
	// Stack is the stack's name, Local the local's.
	Stack, Local string
	// Place is where the local stands.
	Place hcl.Range
	// Reason says in few words what failed. It quotes nothing of the variables.
	Reason string
	// Detail says more, and may quote the variables.
	Detail string
	// References are what the local depends on of the variables, directly or through other locals.
	References []hcl.Traversal
}

// Error implements error. It leaves out the detail, which may show a secret.
func (e *LocalError) Error() string {
	return fmt.Sprintf("the stack %q cannot compute local.%s (%s:%d): %s", e.Stack, e.Local, e.Place.Filename, e.Place.Start.Line, e.Reason)
}

// EvalLocals evaluates the locals of a stack for values of the variables by name, which may be unknown in part. The error is a
// [*LocalError].
func (m *Module) EvalLocals(variables map[string]cty.Value) (map[string]cty.Value, error) {
	context := localContext(variables)
	values := map[string]cty.Value{}
	for _, one := range m.locals {
		value, diags := one.value(context, values)
		if diags.HasErrors() {
			return nil, &LocalError{
				Stack: m.name, Local: one.name, Place: one.place, Reason: strings.TrimSuffix(oneLine(diags[0].Summary), "."),
				Detail: oneLine(diags[0].Detail), References: m.dependencies(one),
			}
		}
		values[one.name] = value
	}
	return values, nil
}

// dependencies answers what a local depends on of the variables. Locals stand behind those that they refer to.
func (m *Module) dependencies(of local) []hcl.Traversal {
	var references []hcl.Traversal
	wanted := map[string]bool{of.name: true}
	for _, one := range slices.Backward(m.locals) {
		if !wanted[one.name] {
			continue
		}
		for _, name := range one.referred() {
			wanted[name] = true
		}
		references = append(references, slices.DeleteFunc(one.expression.Variables(), func(r hcl.Traversal) bool { return ReferencedVariable(r) == "" })...)
	}
	return references
}

// decodeVariables answers the variables that locals may refer to.
func (m *Module) decodeVariables(raw []byte) (map[string]cty.Value, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, errors.New("the variables are no JSON object")
	}
	decoded := map[string]cty.Value{}
	for _, name := range localVariables {
		value, err := ctyjson.Unmarshal(fields[name], m.variables[name].Type.WithoutOptionalAttributesDeep())
		if err != nil {
			return nil, fmt.Errorf("the variable %s is not of its type", name)
		}
		decoded[name] = value
	}
	return decoded, nil
}

// localContext is what locals are evaluated in, but for those that are evaluated before.
func localContext(variables map[string]cty.Value) *hcl.EvalContext {
	visible := map[string]cty.Value{}
	for _, name := range localVariables {
		visible[name] = variables[name]
	}
	return EvalContext(visible)
}

// value evaluates one local, with the values of those that it refers to.
func (l local) value(context *hcl.EvalContext, before map[string]cty.Value) (cty.Value, hcl.Diagnostics) {
	own := context.NewChild()
	own.Variables = map[string]cty.Value{localsRoot: cty.ObjectVal(before)}
	return l.expression.Value(own)
}

// referred answers the names of the locals that the local refers to, in order.
func (l local) referred() []string {
	var names []string
	for _, reference := range l.expression.Variables() {
		if name := referredLocal(reference); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// referredLocal answers the name of the local that a reference leads to; "" when it leads elsewhere.
func referredLocal(reference hcl.Traversal) string {
	if len(reference) < 2 || reference.IsRelative() || reference.RootName() != localsRoot {
		return ""
	}
	if step, ok := reference[1].(hcl.TraverseAttr); ok {
		return step.Name
	}
	return ""
}

// readLocals answers the locals in an order in which each stands behind those that it refers to, and reports what keeps one from being
// evaluated before a run.
func readLocals(blocks []*hclsyntax.Block, variables map[string]Variable, found *report) []local {
	declared := declaredLocals(blocks, found)
	c := localCheck{variables: variables, declared: declared, found: found}
	ordered := c.order()
	context := localContext(unknownContext(variables).Variables[variablesRoot].AsValueMap())
	values := map[string]cty.Value{}
	for name := range declared {
		values[name] = cty.DynamicVal
	}
	for _, one := range ordered {
		if !c.sound(one) {
			continue
		}
		value, diags := one.value(context, values)
		for _, diag := range diags {
			place := one.place
			if diag.Subject != nil {
				place = *diag.Subject
			}
			found.at(place, localsRoot+"."+one.name, "cannot be evaluated: "+oneLine(diag.Summary), oneLine(diag.Detail))
		}
		if !diags.HasErrors() {
			values[one.name] = value
		}
	}
	return ordered
}

func declaredLocals(blocks []*hclsyntax.Block, found *report) map[string]local {
	declared := map[string]local{}
	for _, block := range blocks {
		for _, inner := range block.Body.Blocks {
			found.at(inner.Range(), title(inner), "stands in a locals block, which has none", "write name = value")
		}
		for _, name := range slices.Sorted(maps.Keys(block.Body.Attributes)) {
			attribute := block.Body.Attributes[name]
			if _, twice := declared[name]; twice {
				found.at(attribute.Range(), localsRoot+"."+name, "is declared a second time", "keep one")
				continue
			}
			declared[name] = local{name: name, expression: attribute.Expr, place: attribute.Range()}
		}
	}
	return declared
}

// localCheck holds locals to the contract.
type localCheck struct {
	variables map[string]Variable
	declared  map[string]local
	found     *report
}

// order answers the locals, each behind those that it refers to, and reports circles.
func (c localCheck) order() []local {
	ordered := make([]local, 0, len(c.declared))
	const under, done = 1, 2
	seen := map[string]int{}
	var visit func(name string, trail []string)
	visit = func(name string, trail []string) {
		one, exists := c.declared[name]
		switch {
		case !exists || seen[name] == done:
			return
		case seen[name] == under:
			circle := slices.Concat(trail[slices.Index(trail, name):], []string{name})
			c.found.at(one.place, localsRoot+"."+name, "refers to itself: "+strings.Join(circle, " -> "), "compute one of them without the others")
			return
		}
		seen[name] = under
		for _, next := range one.referred() {
			visit(next, append(slices.Clone(trail), name))
		}
		seen[name] = done
		ordered = append(ordered, one)
	}
	for _, name := range slices.Sorted(maps.Keys(c.declared)) {
		visit(name, nil)
	}
	return ordered
}

// sound reports what of a local cannot be evaluated before a run, or must not be.
func (c localCheck) sound(one local) bool {
	what, sound := localsRoot+"."+one.name, true
	breach := func(place hcl.Range, problem, fix string) {
		sound = false
		c.found.at(place, what, problem, fix)
	}
	_ = hclsyntax.VisitAll(one.expression, func(node hclsyntax.Node) hcl.Diagnostics {
		call, ok := node.(*hclsyntax.FunctionCallExpr)
		if !ok {
			return nil
		}
		if _, known := hclfuncs.Functions()[call.Name]; !known {
			breach(call.NameRange, fmt.Sprintf("calls %s, which cannot be evaluated before a run", call.Name),
				"use functions whose answer depends on their arguments only; docs/contracts/module.md lists them")
		}
		if strings.TrimPrefix(call.Name, "core::") == "sensitive" {
			breach(call.NameRange, "calls sensitive, but what is computed here reaches the program in plain text", "keep secrets in user_data, or mark them in "+projectFile)
		}
		return nil
	})
	for _, reference := range one.expression.Variables() {
		if problem, fix := c.reference(reference); problem != "" {
			breach(reference.SourceRange(), problem, fix)
		}
	}
	return sound
}

// reference says what is wrong with a reference in a local, if anything.
func (c localCheck) reference(reference hcl.Traversal) (problem, fix string) {
	variable, other := ReferencedVariable(reference), referredLocal(reference)
	_, declared := c.declared[other]
	switch {
	case declared, slices.Contains(localVariables, variable):
		return "", ""
	case variable == VariableUserData:
		return "refers to var.user_data, but what is computed here reaches the program in plain text", "use ${user_data} in " + projectFile + ", where it is a secret"
	case other != "":
		return "refers to local." + other + ", which is not there", "correct its spelling, or declare it"
	}
	return fmt.Sprintf("refers to %s, which cannot be evaluated before a run", describe(reference)), "refer to var.machine, var.provider_spec and local.NAME only"
}

// unsoundLocal names the first local that this version cannot evaluate, "" when there is none.
func (m *Module) unsoundLocal() string {
	c := localCheck{variables: m.variables, declared: map[string]local{}, found: &report{}}
	for _, one := range m.locals {
		c.declared[one.name] = one
	}
	for _, one := range m.locals {
		if !c.sound(one) {
			return localsRoot + "." + one.name
		}
	}
	return ""
}
