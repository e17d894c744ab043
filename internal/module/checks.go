package module

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// Check is an assertion of a check block that refers to variables only, so that it can be evaluated wherever they are known. One that
// does not hold refuses nothing: it warns.
type Check struct {
	// Name is the block's.
	Name string
	// Validation is the assertion, as if it were a validation of the variable provider_spec.
	Validation
}

// Checks answers the assertions that warn of what variables say, in the order of the module. The caller must not change them.
func (m *Module) Checks() []Check { return m.checks }

// readChecks answers the assertions that can be evaluated before a run, and reports what keeps others from that which are meant to be.
// What looks at anything but variables is the engine's business.
func readChecks(blocks []*hclsyntax.Block, variables map[string]Variable, found *report) []Check {
	var read []Check
	c := validationCheck{variables: variables, context: unknownContext(variables)}
	for _, block := range blocks {
		for _, inner := range block.Body.Blocks {
			if inner.Type != "assert" {
				continue
			}
			condition, message := inner.Body.Attributes["condition"], inner.Body.Attributes["error_message"]
			if condition == nil || message == nil {
				found.at(inner.DefRange(), title(block)+" assert", "has not both condition and error_message", "write both")
				continue
			}
			one := Check{Name: strings.Join(block.Labels, " "), Validation: Validation{
				Variable: VariableProviderSpec, Condition: condition.Expr, ErrorMessage: message.Expr, Place: inner.DefRange(),
				References: condition.Expr.Variables(),
			}}
			own := &report{}
			c.found = own
			if one.ofVariables() {
				c.assertion(title(block)+" assert", one.Validation)
				if len(own.breaches) == 0 {
					read = append(read, one)
				}
			}
			found.breaches = append(found.breaches, own.breaches...)
		}
	}
	return read
}

// ofVariables tells whether the assertion looks at variables and nothing else.
func (c Check) ofVariables() bool {
	return len(c.References) > 0 && ofVariables(append(c.ErrorMessage.Variables(), c.References...))
}

// ofVariables tells whether there are references, all to variables.
func ofVariables(references []hcl.Traversal) bool {
	return len(references) > 0 && !slices.ContainsFunc(references, func(reference hcl.Traversal) bool { return reference.RootName() != variablesRoot })
}

// assertion reports what of an assertion cannot be evaluated before a run, and a message that would show a secret.
func (c validationCheck) assertion(what string, assertion Validation) {
	if c.expression(what+" condition", assertion.Condition) {
		c.result(what+" condition", assertion.Condition, cty.Bool, "write what comes out true or false")
	}
	if c.expression(what+" error_message", assertion.ErrorMessage) {
		c.result(what+" error_message", assertion.ErrorMessage, cty.String, "write a text")
	}
	c.secrecy(what, assertion.ErrorMessage.Variables())
}

// secrecy reports references of a message to sensitive variables.
func (c validationCheck) secrecy(what string, references []hcl.Traversal) {
	for _, reference := range references {
		if name := ReferencedVariable(reference); c.variables[name].Sensitive {
			c.found.at(reference.SourceRange(), what+" error_message", fmt.Sprintf("would show var.%s, which is sensitive", name), "leave it out")
		}
	}
}
