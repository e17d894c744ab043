package stub

import (
	"github.com/hashicorp/hcl/v2/hclwrite"
)

// Configured is what the configuration of a resource sets, whatever the values are.
type Configured struct {
	attributes map[string]bool
	blocks     map[string]*Configured
}

// Read adds what a body sets. Several blocks of one name count as one, and a dynamic block as those that it makes.
func (c *Configured) Read(body *hclwrite.Body) {
	if c.attributes == nil {
		c.attributes, c.blocks = map[string]bool{}, map[string]*Configured{}
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
			c.blocks[name] = &Configured{}
		}
		c.blocks[name].Read(inner)
	}
}

// Add adds what another resource sets.
func (c *Configured) Add(other *Configured) {
	if c.attributes == nil {
		c.attributes, c.blocks = map[string]bool{}, map[string]*Configured{}
	}
	for name := range other.attributes {
		c.attributes[name] = true
	}
	for name, inner := range other.blocks {
		if c.blocks[name] == nil {
			c.blocks[name] = &Configured{}
		}
		c.blocks[name].Add(inner)
	}
}

// Prune removes the marks of unknown attributes that are neither configured nor computed by the schema: older providers may have defaults
// for them, which are not in their schemas. The engine must not take them for null, but a plan has nothing to show of them.
func (b Block) Prune(unknown any, set *Configured) {
	if set == nil {
		set = &Configured{}
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
