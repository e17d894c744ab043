package load

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/contract"
	"github.com/machine-iac/machine-iac-operator/internal/module/hclfuncs"
)

// readLocals returns the locals, each after those that it refers to, and reports what prevents
// evaluating one before a run.
func readLocals(blocks []*hclsyntax.Block, variables map[string]module.Variable,
	found *contract.Report) []module.Local {
	declared := declaredLocals(blocks, found)
	c := localCheck{variables: variables, declared: declared, found: found}
	ordered := c.order()
	context := module.LocalContext(contract.UnknownValues(variables))
	values := map[string]cty.Value{}
	for name := range declared {
		values[name] = cty.DynamicVal
	}
	for _, one := range ordered {
		if !c.sound(one) {
			continue
		}
		one.Expression = hclfuncs.Metered(one.Expression)
		value, diags := one.Value(context, values)
		for _, diag := range diags {
			where := one.Range
			if diag.Subject != nil {
				where = *diag.Subject
			}
			found.At(where, localsRoot+"."+one.Name, "cannot be evaluated: "+contract.OneLine(diag.Summary),
				contract.OneLine(diag.Detail))
		}
		if !diags.HasErrors() {
			values[one.Name] = value
		}
	}
	return ordered
}

func declaredLocals(blocks []*hclsyntax.Block, found *contract.Report) map[string]module.Local {
	declared := map[string]module.Local{}
	for _, block := range blocks {
		for _, inner := range block.Body.Blocks {
			found.At(inner.Range(), contract.Title(inner), "is in a locals block, which cannot contain blocks",
				"write name = value")
		}
		for _, name := range slices.Sorted(maps.Keys(block.Body.Attributes)) {
			attribute := block.Body.Attributes[name]
			if _, twice := declared[name]; twice {
				found.At(attribute.Range(), localsRoot+"."+name, "is declared twice", "keep one")
				continue
			}
			declared[name] = module.Local{Name: name, Expression: attribute.Expr, Range: attribute.Range()}
		}
	}
	return declared
}

// localsRoot starts references to locals.
const localsRoot = "local"

// localCheck checks locals against the contract.
type localCheck struct {
	variables map[string]module.Variable
	declared  map[string]module.Local
	found     *contract.Report
}

// order returns the locals, each after those that it refers to, and reports cycles.
func (c localCheck) order() []module.Local {
	ordered := make([]module.Local, 0, len(c.declared))
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
			c.found.At(one.Range, localsRoot+"."+name, "refers to itself: "+strings.Join(circle, " -> "),
				"compute one of them without the others")
			return
		}
		seen[name] = under
		for _, next := range one.References() {
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

// sound reports what cannot, or must not, be evaluated in a local before a run.
func (c localCheck) sound(one module.Local) bool {
	what, sound := localsRoot+"."+one.Name, true
	breach := func(where hcl.Range, problem, fix string) {
		sound = false
		c.found.At(where, what, problem, fix)
	}
	_ = hclsyntax.VisitAll(one.Expression, func(node hclsyntax.Node) hcl.Diagnostics {
		call, ok := hclfuncs.Plain(node).(*hclsyntax.FunctionCallExpr)
		if !ok {
			return nil
		}
		if _, known := hclfuncs.Functions()[call.Name]; !known {
			breach(call.NameRange, fmt.Sprintf("calls %s, which cannot be evaluated before a run", call.Name),
				"use functions whose result depends only on their arguments; docs/contracts/module.md lists them")
		}
		if strings.TrimPrefix(call.Name, "core::") == "sensitive" {
			breach(call.NameRange, "calls sensitive, but the program gets the result in plain text",
				"keep secrets in user_data, or mark them in "+projectFile)
		}
		return nil
	})
	for _, reference := range one.Expression.Variables() {
		if problem, fix := c.reference(reference); problem != "" {
			breach(reference.SourceRange(), problem, fix)
		}
	}
	return sound
}

// reference returns what is wrong with a reference in a local, if anything.
func (c localCheck) reference(reference hcl.Traversal) (problem, fix string) {
	variable, other := module.ReferencedVariable(reference), module.ReferencedLocal(reference)
	_, declared := c.declared[other]
	switch {
	case declared, variable == module.VariableMachine, variable == module.VariableProviderSpec:
		return "", ""
	case (variable == module.VariableCluster || variable == module.VariableRecorded) && c.variables[variable].Name != "":
		return "", ""
	case variable == module.VariableUserData:
		return "refers to var.user_data, but the program gets the result in plain text", "use ${user_data} in " +
			projectFile + ", where it is a secret"
	case other != "":
		return "refers to local." + other + ", which does not exist", "correct the spelling, or declare it"
	}
	return fmt.Sprintf("refers to %s, which cannot be evaluated before a run",
			contract.Describe(reference)),
		"refer only to var.machine, var.provider_spec, var.cluster, var.recorded and local.NAME"
}

// UnsoundLocal returns the first local that this version cannot evaluate, or "".
func unsoundLocal(of module.Definition) string {
	c := localCheck{variables: of.Variables, declared: map[string]module.Local{}, found: &contract.Report{}}
	for _, one := range of.Locals {
		c.declared[one.Name] = one
	}
	for _, one := range of.Locals {
		if !c.sound(one) {
			return localsRoot + "." + one.Name
		}
	}
	return ""
}
