package contract

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// RequiredOutputs are the outputs that every module has; the actuator publishes them on the Machine.
var RequiredOutputs = []string{"provider_id", "instance_id", "instance_state", "addresses", "instance_type", "region", "zone"}

// optionalOutputs are outputs that a module may have; the actuator publishes them as well.
var optionalOutputs = []string{"interruptible", "outlives"}

// checkOutputs checks the output blocks against the contract.
func checkOutputs(blocks []*hclsyntax.Block, found *Report) {
	declared := map[string]*hclsyntax.Block{}
	for _, block := range blocks {
		name := strings.Join(block.Labels, " ")
		if _, twice := declared[name]; twice {
			found.At(block.Range(), Title(block), "is declared a second time", "keep one")
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
	for _, name := range optionalOutputs {
		if block, exists := declared[name]; exists {
			checkPublished(block, found)
		}
	}
}

// checkPublished checks an output that the actuator publishes.
func checkPublished(block *hclsyntax.Block, found *Report) {
	if sensitive, ok := literalBool(block.Body.Attributes["sensitive"]); !ok || sensitive {
		found.At(block.Range(), Title(block), "is sensitive, but it is published on the Machine", "remove sensitive")
	}
}

// checkOutput checks what every output has.
func checkOutput(block *hclsyntax.Block, found *Report) {
	readDescription(block, found)
	if block.Body.Attributes["value"] == nil {
		found.At(block.Range(), Title(block), "has no value", "add value = ...")
	}
}
