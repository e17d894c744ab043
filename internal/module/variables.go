package module

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/machine-iac/machine-iac-operator/internal/module/hclfuncs"
)

// The variables of a module: these and no others. Only "cluster" may be left out.
const (
	// VariableMachine has the name, namespace, UID, cluster and labels of the Machine.
	VariableMachine = "machine"
	// VariableProviderSpec carries the fields of the Machine's providerSpec.
	VariableProviderSpec = "provider_spec"
	// VariableUserData carries the text that the instance runs at its first boot; empty when there is none.
	VariableUserData = "user_data"
	// VariableCluster has what is known of the cluster, as far as the module declares it.
	VariableCluster = "cluster"
)

// VariableAdopt is the variable that adopt/ declares: which instance is adopted.
const VariableAdopt = "adopt"

// OutputInventory is the output that inventory/ declares: a list of objects with provider_id, name, created and machine_uid, all strings.
const OutputInventory = "inventory"

// MachineType is the type of the variable "machine".
var MachineType = cty.Object(map[string]cty.Type{
	"name":       cty.String,
	"namespace":  cty.String,
	"uid":        cty.String,
	"cluster_id": cty.String,
	"labels":     cty.Map(cty.String),
})

// Variable is an input of a module.
type Variable struct {
	// Name is one of the four.
	Name string
	// Type is the type constraint. Objects in it may have optional attributes.
	Type cty.Type
	// Defaults are the values that optional attributes take when they are missing. Nil when there are none.
	Defaults *typeexpr.Defaults
	// Description is for people.
	Description string
	// Sensitive says that values must not be shown.
	Sensitive bool
	// Validations are what values must hold to besides the type, in the order of the module.
	Validations []Validation
}

// Validation is a validation block of a variable. Its expressions refer to variables of the module and call [hclfuncs.Functions], nothing
// else, so that they can be evaluated wherever the variables are known. They are parsed once, and may be evaluated by many at once.
type Validation struct {
	// Variable is the name of the variable that the block belongs to.
	Variable string
	// Condition returns a bool: whether the variables may be what they are.
	Condition hclsyntax.Expression
	// ErrorMessage returns a text that says what to write instead.
	ErrorMessage hclsyntax.Expression
	// References are what the condition refers to, each beginning with var, in the order of their appearance.
	References []hcl.Traversal
	// Range is where the block is in the module.
	Range hcl.Range
}

func (v *Validation) meter() {
	v.Condition, v.ErrorMessage = hclfuncs.Metered(v.Condition), hclfuncs.Metered(v.ErrorMessage)
}

// variablesRoot is what references to variables begin with.
const variablesRoot = "var"

// ReferencedVariable returns the name of the variable that a reference leads to; "" when it leads elsewhere.
func ReferencedVariable(reference hcl.Traversal) string {
	if len(reference) < 2 || reference.IsRelative() || reference.RootName() != variablesRoot {
		return ""
	}
	if step, ok := reference[1].(hcl.TraverseAttr); ok {
		return step.Name
	}
	return ""
}

// EvalContext returns what a validation's expressions are evaluated in, for values of the variables by name. All that is evaluated in it has one
// budget.
func EvalContext(variables map[string]cty.Value) *hcl.EvalContext {
	return EvalContextWithin(hclfuncs.NewBudget(), variables)
}

// EvalContextWithin is [EvalContext] with the rest of a budget.
func EvalContextWithin(budget *hclfuncs.Budget, variables map[string]cty.Value) *hcl.EvalContext {
	context := &hcl.EvalContext{Variables: map[string]cty.Value{variablesRoot: cty.ObjectVal(variables)}}
	hclfuncs.Bound(context, budget)
	return context
}

// Check is an assertion of a check block that refers to variables only, so that it can be evaluated wherever they are known. One that
// does not hold refuses nothing: it warns.
type Check struct {
	// Name is the block's.
	Name string
	// Validation is the assertion, as if it were a validation of the variable provider_spec.
	Validation
}
