package failure

import (
	"slices"
	"strings"
)

// aboutVariables are the summaries with which OpenTofu and Terraform reject values of variables.
var aboutVariables = []string{"Invalid value for variable", "Invalid value for input variable",
	"No value for required variable"}

// aboutExpressions are the summaries with which they reject the result of an expression in the
// module.
var aboutExpressions = []string{
	"Unsupported argument", "Unsupported attribute", "Unsupported block type", "Missing required argument",
	"Incorrect attribute value type",
	"Invalid index", "Invalid function argument", "Error in function call", "Invalid template interpolation value",
	"Invalid for_each argument",
	"Invalid count argument", "Invalid operand", "Attempt to get attribute from null value", "Attempt to index null value",
	"Iteration over null value",
}

// givenRoots start the references whose values are known without asking the infrastructure. A local
// may depend on a data source, so it is not one of them.
var givenRoots = []string{"var", "each", "count", "path", "terraform", "tofu"}

// invalidates reports whether the engine's own validation proves that only a different
// configuration helps. It compares whole summaries from a closed list, since providers may use the
// same words. An expression that depends on the infrastructure proves nothing, since its values
// change.
func (d Diagnostic) invalidates() bool {
	switch {
	case slices.Contains(aboutVariables, d.Summary):
		return true
	case d.Summary == preconditionFailed:
		return strings.HasPrefix(d.Context, managedBlock)
	case slices.Contains(aboutExpressions, d.Summary):
		return d.isExpression() && !d.asksInfrastructure()
	}
	return false
}

// isExpression reports whether the diagnostic is about the module's source. A provider's diagnostic
// without a source position is not.
func (d Diagnostic) isExpression() bool { return d.File != "" && d.Snippet != "" }

// asksInfrastructure reports whether the source refers to anything but variables, or calls a
// function of a provider.
func (d Diagnostic) asksInfrastructure() bool {
	text := d.Snippet + "\n" + d.Detail
	if strings.Contains(text, "data.") || strings.Contains(text, "local.") || strings.Contains(text, "module.") ||
		strings.Contains(text, "self.") || strings.Contains(text, "provider::") {
		return true
	}
	return slices.ContainsFunc(d.Values, func(value string) bool {
		root, _, _ := strings.Cut(strings.Fields(value + " ")[0], ".")
		root, _, _ = strings.Cut(root, "[")
		return !slices.Contains(givenRoots, root)
	})
}
