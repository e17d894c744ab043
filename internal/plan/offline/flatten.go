package offline

import (
	"strconv"
	"strings"

	yamlnode "go.yaml.in/yaml/v3"
)

// flatten gives each value in a program's outputs an output of its own, since Pulumi knows an output as a whole or not
// at all. It returns the steps to each value: names and indices.
func flatten(outputs *yamlnode.Node) map[string][]any {
	steps := map[string][]any{}
	if outputs == nil || outputs.Kind != yamlnode.MappingNode {
		return steps
	}
	given := outputs.Content
	outputs.Content = nil
	var visit func(node *yamlnode.Node, path []any)
	visit = func(node *yamlnode.Node, path []any) {
		switch {
		case node.Kind == yamlnode.SequenceNode && len(node.Content) > 0:
			for n, inner := range node.Content {
				visit(inner, append(path[:len(path):len(path)], n))
			}
		case node.Kind == yamlnode.MappingNode && len(node.Content) > 0 && !isFunction(node):
			for i := 0; i+1 < len(node.Content); i += 2 {
				visit(node.Content[i+1], append(path[:len(path):len(path)], node.Content[i].Value))
			}
		default:
			name := "out" + strconv.Itoa(len(steps))
			steps[name] = path
			outputs.Content = append(outputs.Content, scalar(name), node)
		}
	}
	for i := 0; i+1 < len(given); i += 2 {
		visit(given[i+1], []any{given[i].Value})
	}
	return steps
}

// isFunction reports whether a map calls a built-in function.
func isFunction(node *yamlnode.Node) bool {
	return len(node.Content) == 2 && strings.HasPrefix(strings.ToLower(node.Content[0].Value), functionPrefix)
}

// gather is the inverse of flatten.
func gather(outputs map[string]any, steps map[string][]any) map[string]any {
	var all any = map[string]any{}
	for name, path := range steps {
		all = put(all, path, outputs[name])
	}
	gathered, _ := all.(map[string]any)
	return gathered
}

// put returns a value with another one set at a path.
func put(into any, path []any, value any) any {
	if len(path) == 0 {
		return value
	}
	if name, ok := path[0].(string); ok {
		object, _ := into.(map[string]any)
		if object == nil {
			object = map[string]any{}
		}
		object[name] = put(object[name], path[1:], value)
		return object
	}
	n, _ := path[0].(int)
	list, _ := into.([]any)
	for len(list) <= n {
		list = append(list, nil)
	}
	list[n] = put(list[n], path[1:], value)
	return list
}
