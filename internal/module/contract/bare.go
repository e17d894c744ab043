package contract

import (
	"fmt"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// Bounds of spec.instanceCheck.intervalSeconds.
const (
	minCheckSeconds = 60
	maxCheckSeconds = 86400
)

func (m *Metadata) checkInstanceCheck() {
	if m == nil || m.Spec.InstanceCheck == nil {
		return
	}
	if seconds := m.Spec.InstanceCheck.IntervalSeconds; seconds < minCheckSeconds || seconds > maxCheckSeconds {
		m.AtField("spec.instanceCheck.intervalSeconds", fmt.Sprintf("is %d", seconds),
			fmt.Sprintf("write %d to %d", minCheckSeconds, maxCheckSeconds))
	}
}

// bareRoot returns the root module with the module's providers alone. If that is impossible, it
// reports why and returns an empty one.
func bareRoot(blocks map[string][]*hclsyntax.Block, files module.Files, found *Report) (root module.BareRoot) {
	if by, refused := root.Cut(blocks, files); by != nil {
		at := refused.SourceRange()
		found.At(at, Title(by), "depends on "+string(at.SliceBytes(files[at.Filename]))+", which a destroy does not have",
			"use only variables other than user_data, and locals that depend on those; credentials are in the environment")
	}
	return root
}
