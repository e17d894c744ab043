package failure

import (
	"slices"
	"strings"
)

// aboutVariables are the summaries with which OpenTofu and Terraform refuse the values of variables.
var aboutVariables = []string{"Invalid value for variable", "Invalid value for input variable", "No value for required variable"}

// aboutExpressions are the summaries with which they refuse what an expression of the module makes of values.
var aboutExpressions = []string{
	"Unsupported argument", "Unsupported attribute", "Unsupported block type", "Missing required argument", "Incorrect attribute value type",
	"Invalid index", "Invalid function argument", "Error in function call", "Invalid template interpolation value", "Invalid for_each argument",
	"Invalid count argument", "Invalid operand", "Attempt to get attribute from null value", "Attempt to index null value", "Iteration over null value",
}

// givenRoots begin the references whose values are known before anything is asked of the infrastructure. A local may be made of what a
// data source says.
var givenRoots = []string{"var", "each", "count", "path", "terraform", "tofu"}

// invalidates reports whether the engine's own validation proves that only another configuration helps: a summary of a closed list, as a
// whole, since providers may use its words in theirs. What an expression makes of the infrastructure's values is no proof: these change.
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

// isExpression reports whether it arose in the module's text; a provider's diagnostic without a place in it does not.
func (d Diagnostic) isExpression() bool { return d.File != "" && d.Snippet != "" }

// asksInfrastructure reports whether what it arose in refers to anything but variables, or to a function of a provider.
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
