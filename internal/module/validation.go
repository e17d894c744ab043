package module

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/machine-iac/machine-iac-operator/internal/module/hclfuncs"
)

// Validation is a validation block of a variable. Its expressions refer to variables of the module and call [hclfuncs.Functions], nothing
// else, so that they can be evaluated wherever the variables are known. They are parsed once, and may be evaluated by many at once.
type Validation struct {
	// Variable is the name of the variable that the block belongs to.
	Variable string
	// Condition answers a bool: whether the variables may be what they are.
	Condition hclsyntax.Expression
	// ErrorMessage answers a text that tells what to write instead.
	ErrorMessage hclsyntax.Expression
	// References are what the condition refers to, each beginning with var, in the order of their appearance.
	References []hcl.Traversal
	// Place is where the block stands in the module.
	Place hcl.Range
}

// variablesRoot is what references to variables begin with.
const variablesRoot = "var"

// ReferencedVariable answers the name of the variable that a reference leads to; "" when it leads elsewhere.
func ReferencedVariable(reference hcl.Traversal) string {
	if len(reference) < 2 || reference.IsRelative() || reference.RootName() != variablesRoot {
		return ""
	}
	if step, ok := reference[1].(hcl.TraverseAttr); ok {
		return step.Name
	}
	return ""
}

// EvalContext answers what a validation's expressions are evaluated in, for values of the variables by name.
func EvalContext(variables map[string]cty.Value) *hcl.EvalContext {
	return &hcl.EvalContext{Variables: map[string]cty.Value{variablesRoot: cty.ObjectVal(variables)}, Functions: hclfuncs.Functions()}
}

// readValidations reads the validation blocks of a variable. One that lacks a part is reported and left out.
func readValidations(variable string, block *hclsyntax.Block, found *report) []Validation {
	var read []Validation
	for _, inner := range block.Body.Blocks {
		if inner.Type != "validation" {
			continue
		}
		what := title(block) + " validation"
		for _, name := range slices.Sorted(maps.Keys(inner.Body.Attributes)) {
			if name != "condition" && name != "error_message" {
				found.at(inner.Body.Attributes[name].Range(), what, "has the argument "+name+", which validations do not have", "remove it")
			}
		}
		for _, block := range inner.Body.Blocks {
			found.at(block.Range(), what, "has a block "+block.Type+", which validations do not have", "remove it")
		}
		condition, message := inner.Body.Attributes["condition"], inner.Body.Attributes["error_message"]
		if condition == nil || message == nil {
			found.at(inner.DefRange(), what, "has not both condition and error_message", "write both")
			continue
		}
		read = append(read, Validation{
			Variable: variable, Condition: condition.Expr, ErrorMessage: message.Expr, Place: inner.DefRange(),
			References: condition.Expr.Variables(),
		})
	}
	return read
}

// validationCheck holds the validations of a module to the contract: whatever the engine would check of the variables can be
// checked without it.
type validationCheck struct {
	variables map[string]Variable
	found     *report
	// context is an unknownContext.
	context *hcl.EvalContext
}

func checkValidations(variables map[string]Variable, found *report) {
	c := validationCheck{variables: variables, found: found, context: unknownContext(variables)}
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		for _, validation := range variables[name].Validations {
			c.check(validation)
		}
	}
	c.checkCircle()
}

// unknownContext has every variable of its type, and unknown.
func unknownContext(variables map[string]Variable) *hcl.EvalContext {
	unknown := map[string]cty.Value{}
	for name, variable := range variables {
		unknown[name] = cty.DynamicVal
		if variable.Type != cty.NilType {
			unknown[name] = cty.UnknownVal(variable.Type.WithoutOptionalAttributesDeep())
		}
	}
	return EvalContext(unknown)
}

func (c validationCheck) check(validation Validation) {
	what := fmt.Sprintf("variable %q validation", validation.Variable)
	c.assertion(what, validation)
	own := func(reference hcl.Traversal) bool { return ReferencedVariable(reference) == validation.Variable }
	if !slices.ContainsFunc(validation.References, own) {
		c.found.at(validation.Condition.Range(), what+" condition", "does not refer to the variable", "refer to var."+validation.Variable)
	}
}

// expression reports what of an expression cannot be evaluated before a run. try and can would hide it, so the tree is walked.
func (c validationCheck) expression(what string, expression hclsyntax.Expression) bool {
	sound := true
	breach := func(place hcl.Range, problem, fix string) {
		sound = false
		c.found.at(place, what, problem, fix)
	}
	_ = hclsyntax.VisitAll(expression, func(node hclsyntax.Node) hcl.Diagnostics {
		if call, ok := node.(*hclsyntax.FunctionCallExpr); ok {
			if _, known := hclfuncs.Functions()[call.Name]; !known {
				breach(call.NameRange, fmt.Sprintf("calls %s, which cannot be evaluated before a run", call.Name),
					"use functions whose answer depends on their arguments only; docs/contracts/module.md lists them")
			}
		}
		return nil
	})
	for _, reference := range expression.Variables() {
		if _, known := c.variables[ReferencedVariable(reference)]; !known {
			breach(reference.SourceRange(), fmt.Sprintf("refers to %s, which cannot be evaluated before a run", describe(reference)),
				"refer to var.machine, var.provider_spec and var.user_data only")
			continue
		}
		if _, diags := reference.TraverseAbs(c.context); diags.HasErrors() {
			breach(reference.SourceRange(), fmt.Sprintf("refers to %s, which is not there: %s", describe(reference), oneLine(diags[0].Detail)),
				"correct its spelling, or add it to the type")
		}
	}
	return sound
}

// result reports an expression that fails whatever the variables are, and one whose result has another type than is wanted.
func (c validationCheck) result(what string, expression hclsyntax.Expression, wanted cty.Type, fix string) {
	value, diags := expression.Value(c.context)
	if diags.HasErrors() {
		for _, diag := range diags {
			place := expression.Range()
			if diag.Subject != nil {
				place = *diag.Subject
			}
			c.found.at(place, what, "cannot be evaluated: "+oneLine(diag.Summary), oneLine(diag.Detail))
		}
		return
	}
	if converted, err := convert.Convert(value, wanted); err != nil || converted.IsKnown() && converted.IsNull() {
		c.found.at(expression.Range(), what, "does not come out as "+wanted.FriendlyName(), fix)
	}
}

// checkCircle reports variables whose validations refer to one another in a circle: the engines find no order to check them in.
func (c validationCheck) checkCircle() {
	refers := map[string]map[string]hcl.Range{}
	for name, variable := range c.variables {
		refers[name] = map[string]hcl.Range{}
		for _, validation := range variable.Validations {
			for _, reference := range slices.Concat(validation.References, validation.ErrorMessage.Variables()) {
				if other := ReferencedVariable(reference); other != name {
					refers[name][other] = reference.SourceRange()
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(refers)) {
		for _, other := range slices.Sorted(maps.Keys(refers[name])) {
			if reaches(refers, other, name, len(refers)) {
				c.found.at(refers[name][other], fmt.Sprintf("variable %q validation", name),
					fmt.Sprintf("refers to var.%s, whose validations lead back to it", other), "check both in the validation of one of them")
			}
		}
	}
}

// reaches tells whether references lead from one variable to another in at most so many steps.
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

// describe renders a reference as its author wrote it, as far as it consists of names.
func describe(reference hcl.Traversal) string {
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
