package offline

import (
	"github.com/hashicorp/hcl/v2/hclwrite"
)

// written is what the configuration of a resource says, whatever its values are.
type written struct {
	attributes map[string]bool
	blocks     map[string]*written
}

// read adds what a body says. Several blocks of one name count as one, and a dynamic block as those that it makes.
func (w *written) read(body *hclwrite.Body) {
	if w.attributes == nil {
		w.attributes, w.blocks = map[string]bool{}, map[string]*written{}
	}
	for name := range body.Attributes() {
		w.attributes[name] = true
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
		if w.blocks[name] == nil {
			w.blocks[name] = &written{}
		}
		w.blocks[name].read(inner)
	}
}

// prune takes from the marks of what is unknown those of attributes that are neither written nor said to be computed: providers of
// the older kind may have defaults for them, which their schemas do not tell. The engine must not take them for null, but there is
// nothing to say of them.
func (b block) prune(unknown any, said *written) {
	if said == nil {
		said = &written{}
	}
	marks, _ := unknown.(map[string]any)
	for name, mark := range marks {
		if one, ok := b.attributes[name]; ok {
			if mark == true && one.optional && !one.computed && !said.attributes[name] {
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
			inner.prune(entry, said.blocks[name])
		}
	}
}
