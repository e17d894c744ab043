package module

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// The outputs that every module has; the actuator publishes them on the Machine.
const (
	// OutputProviderID is the spec.providerID of the Machine and of its Node.
	OutputProviderID = "provider_id"
	// OutputInstanceID is the infrastructure's own name of the instance.
	OutputInstanceID = "instance_id"
	// OutputInstanceState is the infrastructure's word for the instance's state.
	OutputInstanceState = "instance_state"
	// OutputAddresses is a list of objects with type (a corev1.NodeAddressType) and address.
	OutputAddresses = "addresses"
	// OutputInstanceType is the instance's type or size.
	OutputInstanceType = "instance_type"
	// OutputRegion is the region that the instance is in; empty where there is no such thing.
	OutputRegion = "region"
	// OutputZone is the zone that the instance is in; empty where there is no such thing.
	OutputZone = "zone"
)

var requiredOutputs = []string{
	OutputProviderID, OutputInstanceID, OutputInstanceState, OutputAddresses, OutputInstanceType, OutputRegion, OutputZone,
}

// checkOutputs holds the output blocks to the contract.
func checkOutputs(blocks []*hclsyntax.Block, found *report) {
	declared := map[string]*hclsyntax.Block{}
	for _, block := range blocks {
		name := strings.Join(block.Labels, " ")
		if _, twice := declared[name]; twice {
			found.at(block.Range(), title(block), "is declared a second time", "keep one")
			continue
		}
		declared[name] = block
		if description, ok := literalString(block.Body.Attributes["description"]); !ok || strings.TrimSpace(description) == "" {
			found.at(block.Range(), title(block), "has no description", `add description = "..." with a literal text`)
		}
		if block.Body.Attributes["value"] == nil {
			found.at(block.Range(), title(block), "has no value", "add value = ...")
		}
	}
	for _, name := range requiredOutputs {
		block, exists := declared[name]
		if !exists {
			found.add(Breach{File: "outputs.tf", What: fmt.Sprintf("output %q", name), Problem: "is missing", Fix: "declare it"})
			continue
		}
		if sensitive, ok := literalBool(block.Body.Attributes["sensitive"]); !ok || sensitive {
			found.at(block.Range(), title(block), "is sensitive, but it is published on the Machine", "remove sensitive")
		}
	}
}
