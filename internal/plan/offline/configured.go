package offline

import (
	"github.com/hashicorp/hcl/v2/hclwrite"
)

// configured is what the configuration of a resource sets, whatever the values.
type configured struct {
	attributes map[string]bool
	blocks     map[string]*configured
}

// Read adds what a body sets. It merges blocks of one name, and treats a dynamic block as the blocks that it generates.
func (c *configured) Read(body *hclwrite.Body) {
	if c.attributes == nil {
		c.attributes, c.blocks = map[string]bool{}, map[string]*configured{}
	}
	for name := range body.Attributes() {
		c.attributes[name] = true
	}
	for _, block := range body.Blocks() {
		name, inner := block.Type(), block.Body()
		if labels := block.Labels(); name == "dynamic" && len(labels) == 1 {
			content := inner.FirstMatchingBlock("content", nil)
			if content == nil {
				continue
			}
			name, inner = labels[0], content.Body()
		}
		if c.blocks[name] == nil {
			c.blocks[name] = &configured{}
		}
		c.blocks[name].Read(inner)
	}
}

// Add adds what another resource sets.
func (c *configured) Add(other *configured) {
	if c.attributes == nil {
		c.attributes, c.blocks = map[string]bool{}, map[string]*configured{}
	}
	for name := range other.attributes {
		c.attributes[name] = true
	}
	for name, inner := range other.blocks {
		if c.blocks[name] == nil {
			c.blocks[name] = &configured{}
		}
		c.blocks[name].Add(inner)
	}
}

// Prune removes the marks of unknown attributes that are neither configured nor computed by the schema. Older providers
// may have defaults for them that are not in their schemas, so the engine must not take them for null, but a plan need
// not show them.
func (b block) Prune(unknown any, set *configured) {
	if set == nil {
		set = &configured{}
	}
	marks, _ := unknown.(map[string]any)
	for name, mark := range marks {
		if one, ok := b.attributes[name]; ok {
			if mark == true && one.optional && !one.computed && !set.attributes[name] {
				delete(marks, name)
			}
			continue
		}
		inner, ok := b.blocks[name]
		if !ok {
			continue
		}
		entries, isList := mark.([]any)
		if !isList {
			entries = []any{mark}
		}
		for _, entry := range entries {
			inner.Prune(entry, set.blocks[name])
		}
	}
}
