package contract

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/hclfuncs"
)

// variablesRoot starts references to variables.
const variablesRoot = "var"

// readValidations reads the validation blocks of a variable. It reports and skips incomplete ones.
func readValidations(variable string, block *hclsyntax.Block, found *Report) []module.Validation {
	var read []module.Validation
	for _, inner := range block.Body.Blocks {
		if inner.Type != "validation" {
			continue
		}
		what := Title(block) + " validation"
		for _, name := range slices.Sorted(maps.Keys(inner.Body.Attributes)) {
			if name != "condition" && name != "error_message" {
				found.At(inner.Body.Attributes[name].Range(), what, "has the argument "+name+", which validations do not have",
					"remove it")
			}
		}
		for _, block := range inner.Body.Blocks {
			found.At(block.Range(), what, "has a block "+block.Type+", which validations do not have", "remove it")
		}
		condition, message := inner.Body.Attributes["condition"], inner.Body.Attributes["error_message"]
		if condition == nil || message == nil {
			found.At(inner.DefRange(), what, "needs both condition and error_message", "write both")
			continue
		}
		read = append(read, module.Validation{
			Variable: variable, Condition: condition.Expr, ErrorMessage: message.Expr, Range: inner.DefRange(),
			References: condition.Expr.Variables(),
		})
	}
	return read
}

// validationCheck checks the validations of a module: everything that the engine would check about
// the variables must be checkable without it.
type validationCheck struct {
	variables map[string]module.Variable
	found     *Report
	// context contains an unknown value for every variable.
	context *hcl.EvalContext
}

func checkValidations(variables map[string]module.Variable, found *Report) {
	c := validationCheck{variables: variables, found: found, context: module.EvalContext(UnknownValues(variables))}
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		for _, validation := range variables[name].Validations {
			c.check(validation)
		}
	}
	c.checkCircle()
}

// UnknownValues returns an unknown value of the right type for each variable.
func UnknownValues(variables map[string]module.Variable) map[string]cty.Value {
	unknown := map[string]cty.Value{}
	for name, variable := range variables {
		unknown[name] = cty.DynamicVal
		if variable.Type != cty.NilType {
			unknown[name] = cty.UnknownVal(variable.Type.WithoutOptionalAttributesDeep())
		}
	}
	return unknown
}

// SoundValidations removes the validations that the contract does not allow because they cannot be
// evaluated here.
func SoundValidations(variables map[string]module.Variable) {
	for name, variable := range variables {
		var sound []module.Validation
		for _, validation := range variable.Validations {
			own := &Report{}
			validationCheck{variables: variables, found: own,
				context: module.EvalContext(UnknownValues(variables))}.check(validation)
			if len(own.breaches) == 0 {
				sound = append(sound, validation)
			}
		}
		variable.Validations = sound
		variables[name] = variable
	}
}

func (c validationCheck) check(validation module.Validation) {
	what := fmt.Sprintf("variable %q validation", validation.Variable)
	c.assertion(what, validation)
	own := func(reference hcl.Traversal) bool { return module.ReferencedVariable(reference) == validation.Variable }
	if !slices.ContainsFunc(validation.References, own) {
		c.found.At(validation.Condition.Range(), what+" condition", "does not refer to the variable",
			"refer to var."+validation.Variable)
	}
}

// expression reports the parts of an expression that cannot be evaluated before a run. It walks the
// tree, since try and can would hide them.
func (c validationCheck) expression(what string, expression hclsyntax.Expression) bool {
	sound := true
	breach := func(where hcl.Range, problem, fix string) {
		sound = false
		c.found.At(where, what, problem, fix)
	}
	_ = hclsyntax.VisitAll(expression, func(node hclsyntax.Node) hcl.Diagnostics {
		if call, ok := hclfuncs.Plain(node).(*hclsyntax.FunctionCallExpr); ok {
			if _, known := hclfuncs.Functions()[call.Name]; !known {
				breach(call.NameRange, fmt.Sprintf("calls %s, which cannot be evaluated before a run", call.Name),
					"use functions whose result depends only on their arguments; docs/contracts/module.md lists them")
			}
		}
		return nil
	})
	for _, reference := range expression.Variables() {
		name := module.ReferencedVariable(reference)
		if _, known := c.variables[name]; !known || name == module.VariableRecorded {
			breach(reference.SourceRange(), fmt.Sprintf("refers to %s, which cannot be evaluated before a run",
				Describe(reference)),
				"refer only to var.machine, var.provider_spec, var.user_data and var.cluster")
			continue
		}
		if _, diags := reference.TraverseAbs(c.context); diags.HasErrors() {
			breach(reference.SourceRange(), fmt.Sprintf("refers to %s, which does not exist: %s", Describe(reference),
				OneLine(diags[0].Detail)),
				"correct the spelling, or add it to the type")
		}
	}
	return sound
}

// result reports an expression that always fails, or whose result has the wrong type.
func (c validationCheck) result(what string, expression hclsyntax.Expression, wanted cty.Type, fix string) {
	value, diags := hclfuncs.Metered(expression).Value(c.context)
	if diags.HasErrors() {
		for _, diag := range diags {
			where := expression.Range()
			if diag.Subject != nil {
				where = *diag.Subject
			}
			c.found.At(where, what, "cannot be evaluated: "+OneLine(diag.Summary), OneLine(diag.Detail))
		}
		return
	}
	if converted, err := convert.Convert(value, wanted); err != nil || converted.IsKnown() && converted.IsNull() {
		c.found.At(expression.Range(), what, "does not return "+wanted.FriendlyName(), fix)
	}
}

// checkCircle reports variables whose validations refer to each other in a cycle: engines then find
// no order to check them in.
func (c validationCheck) checkCircle() {
	refers := map[string]map[string]hcl.Range{}
	for name, variable := range c.variables {
		refers[name] = map[string]hcl.Range{}
		for _, validation := range variable.Validations {
			for _, reference := range slices.Concat(validation.References, validation.ErrorMessage.Variables()) {
				if other := module.ReferencedVariable(reference); other != name {
					refers[name][other] = reference.SourceRange()
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(refers)) {
		for _, other := range slices.Sorted(maps.Keys(refers[name])) {
			if reaches(refers, other, name, len(refers)) {
				c.found.At(refers[name][other], fmt.Sprintf("variable %q validation", name),
					fmt.Sprintf("refers to var.%s, whose validations refer back to it",
						other), "check both in the validation of one of them")
			}
		}
	}
}

// reaches reports whether references lead from one variable to another in at most the given number
// of steps.
func reaches(refers map[string]map[string]hcl.Range, from, to string, steps int) bool {
	if from == to {
		return true
	}
	for next := range refers[from] {
		if steps > 0 && reaches(refers, next, to, steps-1) {
			return true
		}
	}
	return false
}

// Describe renders a reference as in the source, up to the first step that is not a name.
func Describe(reference hcl.Traversal) string {
	parts := []string{reference.RootName()}
	for _, step := range reference[1:] {
		attribute, ok := step.(hcl.TraverseAttr)
		if !ok {
			break
		}
		parts = append(parts, attribute.Name)
	}
	return strings.Join(parts, ".")
}
