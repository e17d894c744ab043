package contract

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// RequiredOutputs are the outputs that every module must have. The actuator publishes them on the
// Machine.
var RequiredOutputs = []string{"provider_id", "instance_id", "instance_state", "addresses", "instance_type",
	"region", "zone"}

// optionalOutputs are optional outputs that the actuator also publishes.
var optionalOutputs = []string{"interruptible", "outlives"}

// WithoutPair returns which of the variable and the output "recorded" is missing if only the other
// one exists, and how to fix it. Otherwise it returns empty strings.
func WithoutPair(variables map[string]module.Variable, hasOutput bool) (what, fix string) {
	_, hasVariable := variables[module.VariableRecorded]
	switch {
	case hasVariable && !hasOutput:
		return fmt.Sprintf("output %q",
			module.VariableRecorded), "declare it with the type of var.recorded: nothing else says what is recorded"
	case !hasVariable && hasOutput:
		return fmt.Sprintf("variable %q", module.VariableRecorded), "declare it, or remove the unused output of that name"
	}
	return "", ""
}

// checkOutputs checks the output blocks against the contract.
func checkOutputs(blocks []*hclsyntax.Block, variables map[string]module.Variable, meta *Metadata, found *Report) {
	declared := map[string]*hclsyntax.Block{}
	for _, block := range blocks {
		name := strings.Join(block.Labels, " ")
		if _, twice := declared[name]; twice {
			found.At(block.Range(), Title(block), "is declared twice", "keep one")
			continue
		}
		declared[name] = block
		checkOutput(block, found)
	}
	for _, name := range RequiredOutputs {
		block, exists := declared[name]
		if !exists {
			found.Add(Breach{File: "outputs.tf", What: fmt.Sprintf("output %q", name), Problem: "is missing", Fix: "declare it"})
			continue
		}
		checkPublished(block, found)
	}
	meta.CheckProviderStatus(func(name string) bool { return declared[name] != nil })
	for _, name := range slices.Concat(optionalOutputs, meta.statusOutputs()) {
		if block, exists := declared[name]; exists {
			checkPublished(block, found)
		}
	}
	recorded, exists := declared[module.VariableRecorded]
	if what, fix := WithoutPair(variables, exists); what != "" {
		found.Add(Breach{File: "outputs.tf", What: what, Problem: "is missing", Fix: fix})
	}
	if exists && isSensitive(recorded) {
		found.At(recorded.Range(), Title(recorded), "is sensitive, but the logs of runs may show its value",
			"do not record secrets, and remove sensitive")
	}
}

// statusOutputs returns the outputs that spec.providerStatus publishes. m may be nil.
func (m *Metadata) statusOutputs() []string {
	if m == nil || m.Spec.ProviderStatus == nil {
		return nil
	}
	return slices.Sorted(maps.Values(m.Spec.ProviderStatus.Fields))
}

// CheckProviderStatus checks spec.providerStatus against the module's outputs. m may be nil.
func (m *Metadata) CheckProviderStatus(declared func(output string) bool) {
	if m == nil || m.Spec.ProviderStatus == nil {
		return
	}
	const at = "spec.providerStatus"
	m.checkAPIVersion(at+".apiVersion", m.Spec.ProviderStatus.APIVersion, m.Spec.ProviderStatus.Kind)
	if m.Spec.ProviderStatus.Kind == "" {
		m.AtField(at+".kind", "is empty", "name the type's kind")
	}
	for field, output := range m.Spec.ProviderStatus.Fields {
		if v1alpha1.IsStatusField(field) {
			m.AtField(at+".fields", fmt.Sprintf("has %s, which every provider status has", field), "remove it")
		}
		if !declared(output) {
			m.AtField(at+".fields", fmt.Sprintf("names the output %q for %s, which is missing", output, field),
				"declare the output")
		}
	}
}

// checkPublished checks an output that the actuator publishes.
func checkPublished(block *hclsyntax.Block, found *Report) {
	if isSensitive(block) {
		found.At(block.Range(), Title(block), "is sensitive, but it is published on the Machine", "remove sensitive")
	}
}

// isSensitive reports whether an output is, or may be, sensitive.
func isSensitive(block *hclsyntax.Block) bool {
	sensitive, ok := literalBool(block.Body.Attributes["sensitive"])
	return !ok || sensitive
}

// checkOutput checks what applies to every output.
func checkOutput(block *hclsyntax.Block, found *Report) {
	readDescription(block, found)
	if block.Body.Attributes["value"] == nil {
		found.At(block.Range(), Title(block), "has no value", "add value = ...")
	}
}
