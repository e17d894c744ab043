package module

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/machine-iac/machine-iac-operator/internal/module/hclfuncs"
)

// The variables of a module. It declares all of them and no others; only "cluster" and "recorded"
// are optional.
const (
	// VariableMachine contains the name, namespace, UID, cluster and labels of the Machine.
	VariableMachine = "machine"
	// VariableProviderSpec contains the fields of the Machine's providerSpec.
	VariableProviderSpec = "provider_spec"
	// VariableUserData contains the instance's user data, or is empty.
	VariableUserData = "user_data"
	// VariableCluster contains facts about the cluster, as far as the module declares them.
	VariableCluster = "cluster"
	// VariableRecorded contains the value that the output of this name had when the instance was
	// created, or null before that.
	VariableRecorded = "recorded"
)

// VariableAdopt is the variable of adopt/ that identifies the instance to adopt.
const VariableAdopt = "adopt"

// OutputInventory is the output of inventory/: a list of objects with the strings provider_id,
// name, created and machine_uid.
const OutputInventory = "inventory"

// OutputCapacity is the output of capacity/: an object with the numbers cpu, memory_mib and gpu and
// the string architecture, of which the last two are optional.
const OutputCapacity = "capacity"

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
	// Name of the variable, one of the five.
	Name string
	// Type is the type constraint. Objects in it may have optional attributes.
	Type cty.Type
	// Defaults are the defaults of optional attributes, or nil.
	Defaults *typeexpr.Defaults
	// Description is for people.
	Description string
	// Sensitive means that values must not be shown.
	Sensitive bool
	// Validations are in the order of the module.
	Validations []Validation
}

// Validation is a validation block of a variable. Its expressions refer only to variables of the
// module and call only [hclfuncs.Functions], so they can be evaluated wherever the variables are
// known. They are parsed once and safe for concurrent use.
type Validation struct {
	// Variable is the name of the block's variable.
	Variable string
	// Condition returns a bool: whether the variables are valid.
	Condition hclsyntax.Expression
	// ErrorMessage returns a text that says how to fix the value.
	ErrorMessage hclsyntax.Expression
	// References are the condition's references, each starting with var, in order of appearance.
	References []hcl.Traversal
	// Range of the block in the module.
	Range hcl.Range
}

func (v *Validation) meter() {
	v.Condition, v.ErrorMessage = hclfuncs.Metered(v.Condition), hclfuncs.Metered(v.ErrorMessage)
}

// variablesRoot starts references to variables.
const variablesRoot = "var"

// ReferencedVariable returns the name of the variable that a reference points to, or "".
func ReferencedVariable(reference hcl.Traversal) string {
	if len(reference) < 2 || reference.IsRelative() || reference.RootName() != variablesRoot {
		return ""
	}
	if step, ok := reference[1].(hcl.TraverseAttr); ok {
		return step.Name
	}
	return ""
}

// EvalContext returns the evaluation context for validations with values of the variables. All
// evaluations in it share one budget.
func EvalContext(variables map[string]cty.Value) *hcl.EvalContext {
	return EvalContextWithin(hclfuncs.NewBudget(), variables)
}

// EvalContextWithin is [EvalContext] with the rest of a budget.
func EvalContextWithin(budget *hclfuncs.Budget, variables map[string]cty.Value) *hcl.EvalContext {
	context := &hcl.EvalContext{Variables: map[string]cty.Value{variablesRoot: cty.ObjectVal(variables)}}
	hclfuncs.Bound(context, budget)
	return context
}

// Check is an assertion of a check block that refers only to variables, so it can be evaluated
// wherever they are known. If it fails, it only warns.
type Check struct {
	// Name of the block.
	Name string
	// Validation is the assertion, as if it were a validation of the variable provider_spec.
	Validation
}
