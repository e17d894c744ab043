package module

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// The variables of a module: these and no others.
const (
	// VariableMachine carries what the Machine says of itself.
	VariableMachine = "machine"
	// VariableProviderSpec carries the fields of the Machine's providerSpec.
	VariableProviderSpec = "provider_spec"
	// VariableUserData carries the text that the instance runs at its first boot; empty when there is none.
	VariableUserData = "user_data"
)

// MachineType is the type of the variable "machine".
var MachineType = cty.Object(map[string]cty.Type{
	"name":       cty.String,
	"namespace":  cty.String,
	"uid":        cty.String,
	"cluster_id": cty.String,
	"labels":     cty.Map(cty.String),
})

const machineTypeText = "object({ name = string, namespace = string, uid = string, cluster_id = string, labels = map(string) })"

// Variable is an input of a module.
type Variable struct {
	// Name is one of VariableMachine, VariableProviderSpec and VariableUserData.
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

// reservedFields belong to the object that a providerSpec is, not to its fields.
var reservedFields = []string{"apiVersion", "kind", "metadata"}

// checkVariables reads the variable blocks and holds them to the contract.
func checkVariables(blocks []*hclsyntax.Block, found *report) map[string]Variable {
	read := map[string]Variable{}
	places := map[string]hcl.Range{}
	for _, block := range blocks {
		variable := readVariable(block, found)
		if _, twice := places[variable.Name]; twice {
			found.at(block.Range(), title(block), "is declared a second time", "keep one")
			continue
		}
		places[variable.Name] = block.Range()
		if check, known := variableRules[variable.Name]; !known {
			found.at(block.Range(), title(block), "is not part of the contract", "remove it; what a user may set is a field of provider_spec")
		} else if variable.Type != cty.NilType {
			check(variable, block, found)
		}
		read[variable.Name] = variable
	}
	for _, name := range slices.Sorted(maps.Keys(variableRules)) {
		if _, declared := places[name]; !declared {
			found.add(Breach{File: "variables.tf", What: fmt.Sprintf("variable %q", name), Problem: "is missing", Fix: "declare it"})
		}
	}
	checkValidations(read, found)
	return read
}

func readVariable(block *hclsyntax.Block, found *report) Variable {
	variable := Variable{Name: strings.Join(block.Labels, " ")}
	variable.Validations = readValidations(variable.Name, block, found)
	if description, ok := literalString(block.Body.Attributes["description"]); !ok || strings.TrimSpace(description) == "" {
		found.at(block.Range(), title(block), "has no description", `add description = "..." with a literal text`)
	} else {
		variable.Description = description
	}
	sensitive, ok := literalBool(block.Body.Attributes["sensitive"])
	if !ok {
		found.at(block.Range(), title(block), "has a sensitive argument that is not true or false", "write sensitive = true")
	}
	variable.Sensitive = sensitive
	attribute := block.Body.Attributes["type"]
	if attribute == nil {
		found.at(block.Range(), title(block), "has no type", "add type = ...")
		return variable
	}
	constraint, defaults, diags := typeexpr.TypeConstraintWithDefaults(attribute.Expr)
	if diags.HasErrors() {
		found.diagnostics(block.Range().Filename, title(block), diags)
		return variable
	}
	variable.Type, variable.Defaults = constraint, defaults
	return variable
}

// variableRules holds what each variable must be besides typed and described.
var variableRules = map[string]func(variable Variable, block *hclsyntax.Block, found *report){
	VariableMachine: func(variable Variable, block *hclsyntax.Block, found *report) {
		if !variable.Type.Equals(MachineType) {
			found.at(block.Range(), title(block), "has another type than the contract's", "write type = "+machineTypeText)
		}
	},
	VariableProviderSpec: func(variable Variable, block *hclsyntax.Block, found *report) {
		if !variable.Type.IsObjectType() {
			found.at(block.Range(), title(block), "is not an object", "write type = object({ ... }) with the fields of the providerSpec")
			return
		}
		if variable.Type.HasDynamicTypes() {
			found.at(block.Range(), title(block), "holds the type any, so that a providerSpec cannot be checked before a run", "name the type")
		}
		for _, name := range reservedFields {
			if variable.Type.HasAttribute(name) {
				found.at(block.Range(), title(block), fmt.Sprintf("has the field %s, which belongs to the object itself", name), "remove it")
			}
		}
	},
	VariableUserData: func(variable Variable, block *hclsyntax.Block, found *report) {
		if variable.Type != cty.String {
			found.at(block.Range(), title(block), "is not a string", "write type = string")
		}
		if !variable.Sensitive {
			found.at(block.Range(), title(block), "is not sensitive", "add sensitive = true")
		}
	},
}

// fieldType answers the type at a path of object attributes.
func fieldType(constraint cty.Type, path string) (cty.Type, bool) {
	for step := range strings.SplitSeq(path, ".") {
		if constraint == cty.NilType || !constraint.IsObjectType() || !constraint.HasAttribute(step) {
			return cty.NilType, false
		}
		constraint = constraint.AttributeType(step)
	}
	return constraint, true
}
