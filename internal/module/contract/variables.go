package contract

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/machine-iac/machine-iac-operator/internal/module"
)

const machineTypeText = "object({ name = string, namespace = string, uid = string, cluster_id = string, labels = map(string) })"

// reservedFields belong to the providerSpec object itself.
var reservedFields = []string{"apiVersion", "kind", "metadata"}

// ReadVariables reads and checks the variable blocks.
func ReadVariables(blocks []*hclsyntax.Block, found *Report) map[string]module.Variable {
	read := map[string]module.Variable{}
	places := map[string]hcl.Range{}
	for _, block := range blocks {
		variable := readVariable(block, found)
		if _, twice := places[variable.Name]; twice {
			found.At(block.Range(), Title(block), "is declared twice", "keep one")
			continue
		}
		places[variable.Name] = block.Range()
		if check, known := variableRules[variable.Name]; !known {
			found.At(block.Range(), Title(block), "is not part of the contract",
				"remove it; what users can set are fields of provider_spec")
		} else if variable.Type != cty.NilType {
			check(variable, block, found)
		}
		read[variable.Name] = variable
	}
	for _, name := range slices.Sorted(maps.Keys(variableRules)) {
		if _, declared := places[name]; !declared && name != module.VariableCluster && name != module.VariableRecorded {
			found.Add(Breach{File: "variables.tf", What: fmt.Sprintf("variable %q", name), Problem: "is missing",
				Fix: "declare it"})
		}
	}
	checkValidations(read, found)
	return read
}

func readVariable(block *hclsyntax.Block, found *Report) module.Variable {
	variable := module.Variable{Name: strings.Join(block.Labels, " ")}
	variable.Validations = readValidations(variable.Name, block, found)
	variable.Description = readDescription(block, found)
	sensitive, ok := literalBool(block.Body.Attributes["sensitive"])
	if !ok {
		found.At(block.Range(), Title(block), "has a sensitive argument that is not true or false", "write sensitive = true")
	}
	variable.Sensitive = sensitive
	attribute := block.Body.Attributes["type"]
	if attribute == nil {
		found.At(block.Range(), Title(block), "has no type", "add type = ...")
		return variable
	}
	constraint, defaults, diags := typeexpr.TypeConstraintWithDefaults(attribute.Expr)
	if diags.HasErrors() {
		found.diagnostics(block.Range().Filename, Title(block), diags)
		return variable
	}
	variable.Type, variable.Defaults = constraint, defaults
	return variable
}

// readDescription returns the description of a block, which is required.
func readDescription(block *hclsyntax.Block, found *Report) string {
	description, ok := literalString(block.Body.Attributes["description"])
	if !ok || strings.TrimSpace(description) == "" {
		found.At(block.Range(), Title(block), "has no description", `add description = "..." with a literal text`)
	}
	return description
}

// variableRules are the rules for each variable beyond a type and a description.
var variableRules = map[string]func(variable module.Variable, block *hclsyntax.Block, found *Report){
	module.VariableMachine: func(variable module.Variable, block *hclsyntax.Block, found *Report) {
		if !variable.Type.Equals(module.MachineType) {
			found.At(block.Range(), Title(block), "has a different type than the contract requires",
				"write type = "+machineTypeText)
		}
	},
	module.VariableProviderSpec: func(variable module.Variable, block *hclsyntax.Block, found *Report) {
		if !variable.Type.IsObjectType() {
			found.At(block.Range(), Title(block), "is not an object",
				"write type = object({ ... }) with the fields of the providerSpec")
			return
		}
		if variable.Type.HasDynamicTypes() {
			found.At(block.Range(), Title(block), "contains the type any, so a providerSpec cannot be checked before a run",
				"use a specific type")
		}
		for _, name := range reservedFields {
			if variable.Type.HasAttribute(name) {
				found.At(block.Range(), Title(block), fmt.Sprintf("has the field %s, which belongs to the object itself", name),
					"remove it")
			}
		}
	},
	module.VariableUserData: func(variable module.Variable, block *hclsyntax.Block, found *Report) {
		if variable.Type != cty.String {
			found.At(block.Range(), Title(block), "is not a string", "write type = string")
		}
		if !variable.Sensitive {
			found.At(block.Range(), Title(block), "is not sensitive", "add sensitive = true")
		}
	},
	module.VariableCluster:  checkCluster,
	module.VariableRecorded: checkRecorded,
}

// checkRecorded checks the variable that carries the recorded output of the same name.
func checkRecorded(variable module.Variable, block *hclsyntax.Block, found *Report) {
	if !variable.Type.IsObjectType() || variable.Type.HasDynamicTypes() {
		found.At(block.Range(), Title(block), "is not an object with known types",
			"write type = object({ ... }) with the attributes of the output recorded")
	}
	if variable.Sensitive {
		found.At(block.Range(), Title(block), "is sensitive, but the logs of runs may show its value",
			"do not record secrets, and remove sensitive")
	}
	if value, ok := defaultOf(block); !ok || !value.IsNull() {
		found.At(block.Range(), Title(block), "does not default to null",
			"write default = null: nothing is recorded until the instance exists")
	}
	if len(variable.Validations) > 0 {
		found.At(variable.Validations[0].Range, Title(block), "has a validation, but users cannot change it", "remove it")
	}
}

// checkCluster checks the optional variable cluster. Users do not set it, so a validation would not
// help them.
func checkCluster(variable module.Variable, block *hclsyntax.Block, found *Report) {
	if problem, fix := module.CheckClusterType(variable.Type); problem != "" {
		found.At(block.Range(), Title(block), problem, fix)
	}
	if variable.Sensitive {
		found.At(block.Range(), Title(block), "is sensitive, although it contains no secret", "remove sensitive")
	}
	if !defaultsToNothing(block) {
		found.At(block.Range(), Title(block), "does not default to {}",
			"write default = {}: inputs recorded before the module had the variable lack it")
	}
	if len(variable.Validations) > 0 {
		found.At(variable.Validations[0].Range, Title(block), "has a validation, but users cannot change it",
			"refer to var.cluster in a validation of provider_spec")
	}
}

// defaultsToNothing reports whether a variable has the default {}.
func defaultsToNothing(block *hclsyntax.Block) bool {
	value, ok := defaultOf(block)
	return ok && value.RawEquals(cty.EmptyObjectVal)
}

// defaultOf returns the default of a variable, and whether it is a literal.
func defaultOf(block *hclsyntax.Block) (cty.Value, bool) {
	attribute := block.Body.Attributes["default"]
	if attribute == nil {
		return cty.NilVal, false
	}
	value, diags := literal(attribute)
	return value, !diags.HasErrors()
}

// fieldType returns the type at a path of object attributes.
func fieldType(constraint cty.Type, path string) (cty.Type, bool) {
	for step := range strings.SplitSeq(path, ".") {
		if constraint == cty.NilType || !constraint.IsObjectType() || !constraint.HasAttribute(step) {
			return cty.NilType, false
		}
		constraint = constraint.AttributeType(step)
	}
	return constraint, true
}
