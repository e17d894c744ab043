package contract

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// ReadChecks returns the assertions that can be evaluated before a run, and reports errors in those
// that are meant to be. Assertions that depend on anything but variables are left to the engine.
func ReadChecks(blocks []*hclsyntax.Block, variables map[string]module.Variable, found *Report) []module.Check {
	var read []module.Check
	c := validationCheck{variables: variables, context: module.EvalContext(UnknownValues(variables))}
	for _, block := range blocks {
		for _, inner := range block.Body.Blocks {
			if inner.Type != "assert" {
				continue
			}
			condition, message := inner.Body.Attributes["condition"], inner.Body.Attributes["error_message"]
			if condition == nil || message == nil {
				found.At(inner.DefRange(), Title(block)+" assert", "needs both condition and error_message", "write both")
				continue
			}
			one := module.Check{Name: strings.Join(block.Labels, " "), Validation: module.Validation{
				Variable: module.VariableProviderSpec, Condition: condition.Expr, ErrorMessage: message.Expr,
				Range:      inner.DefRange(),
				References: condition.Expr.Variables(),
			}}
			own := &Report{}
			c.found = own
			if evaluable(one) {
				c.assertion(Title(block)+" assert", one.Validation)
				if len(own.breaches) == 0 {
					read = append(read, one)
				}
			}
			found.breaches = append(found.breaches, own.breaches...)
		}
	}
	return read
}

// evaluable reports whether the assertion refers only to variables.
func evaluable(c module.Check) bool {
	return len(c.References) > 0 && OnlyVariables(append(c.ErrorMessage.Variables(), c.References...))
}

// OnlyVariables reports whether there are references, all of them to variables.
func OnlyVariables(references []hcl.Traversal) bool {
	return len(references) > 0 &&
		!slices.ContainsFunc(references, func(reference hcl.Traversal) bool { return reference.RootName() != variablesRoot })
}

// assertion reports the parts of an assertion that cannot be evaluated before a run, and messages
// that would reveal a secret.
func (c validationCheck) assertion(what string, assertion module.Validation) {
	if c.expression(what+" condition", assertion.Condition) {
		c.result(what+" condition", assertion.Condition, cty.Bool, "use an expression that returns true or false")
	}
	if c.expression(what+" error_message", assertion.ErrorMessage) {
		c.result(what+" error_message", assertion.ErrorMessage, cty.String, "use an expression that returns a string")
	}
	c.secrecy(what, assertion.ErrorMessage.Variables())
}

// secrecy reports a message's references to sensitive variables.
func (c validationCheck) secrecy(what string, references []hcl.Traversal) {
	for _, reference := range references {
		if name := module.ReferencedVariable(reference); c.variables[name].Sensitive {
			c.found.At(reference.SourceRange(), what+" error_message",
				fmt.Sprintf("would show var.%s, which is sensitive", name), "remove it")
		}
	}
}
