package offline

import (
	"slices"
	"strings"

	yamlnode "go.yaml.in/yaml/v3"
)

func entriesOf(node *yamlnode.Node) map[string]*yamlnode.Node {
	found := map[string]*yamlnode.Node{}
	if node == nil || node.Kind != yamlnode.MappingNode {
		return found
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		found[node.Content[i].Value] = node.Content[i+1]
	}
	return found
}

// at returns an entry of a map, or nil. Pulumi ignores case in its own names.
func at(node *yamlnode.Node, name string) *yamlnode.Node {
	if node == nil || node.Kind != yamlnode.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if strings.EqualFold(node.Content[i].Value, name) {
			return node.Content[i+1]
		}
	}
	return nil
}

func valueAt(node *yamlnode.Node, name string) string {
	if found := at(node, name); found != nil {
		return found.Value
	}
	return ""
}

func set(node *yamlnode.Node, name string, value *yamlnode.Node) {
	if found := at(node, name); found != nil {
		*found = *value
		return
	}
	node.Content = append(node.Content, scalar(name), value)
}

// section returns a map's entry that is a map, and adds it if missing.
func section(node *yamlnode.Node, name string) *yamlnode.Node {
	if at(node, name) == nil {
		set(node, name, &yamlnode.Node{Kind: yamlnode.MappingNode})
	}
	return at(node, name)
}

func dropEntry(node *yamlnode.Node, name string) {
	if node == nil {
		return
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == name {
			node.Content = slices.Delete(node.Content, i, i+2)
			return
		}
	}
}

func scalar(text string) *yamlnode.Node {
	return &yamlnode.Node{Kind: yamlnode.ScalarNode, Tag: "!!str", Value: text, Style: yamlnode.DoubleQuotedStyle}
}

func mapping(name string, value *yamlnode.Node) *yamlnode.Node {
	return &yamlnode.Node{Kind: yamlnode.MappingNode, Content: []*yamlnode.Node{scalar(name), value}}
}

func clone(node *yamlnode.Node) *yamlnode.Node {
	copied := *node
	copied.Content = make([]*yamlnode.Node, len(node.Content))
	for n, inner := range node.Content {
		copied.Content[n] = clone(inner)
	}
	return &copied
}
