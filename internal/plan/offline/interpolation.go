package offline

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	yamlnode "go.yaml.in/yaml/v3"
)

// replaceUnknown replaces references to unknown values below a node of a program. It only replaces references to
// variables, which are partly unknown.
func replaceUnknown(node *yamlnode.Node, variables map[string]marked) {
	for _, inner := range node.Content {
		replaceUnknown(inner, variables)
	}
	if node.Kind != yamlnode.ScalarNode || !strings.Contains(node.Value, "${") {
		return
	}
	parts := interpolationsIn(node.Value)
	if len(parts) == 1 && parts[0].text == node.Value { // the reference is the whole value, of any type
		if found, path, ok := parts[0].in(variables); ok && AnyMarked(found.unknown) {
			*node = *expressionOf(found, path)
		}
		return
	}
	var text strings.Builder
	for _, one := range parts {
		if found, _, ok := one.in(variables); ok && AnyMarked(found.unknown) {
			text.WriteString(unknownValue)
		} else {
			text.WriteString(one.text)
		}
	}
	node.Value = text.String()
}

// part is a part of a string: plain, or a reference to a value with the steps to it.
type part struct {
	text  string
	steps []string
}

// in returns the value that a reference leads to, and its spelling; ok is false if it leads elsewhere or nowhere.
func (p part) in(variables map[string]marked) (found marked, path string, ok bool) {
	if len(p.steps) == 0 {
		return marked{}, "", false
	}
	if found, ok = variables[p.steps[0]]; !ok {
		return marked{}, "", false
	}
	for _, step := range p.steps[1:] {
		if found.unknown == true {
			break
		}
		if found, ok = found.step(step); !ok {
			return marked{}, "", false
		}
	}
	return found, strings.TrimSuffix(strings.TrimPrefix(p.text, "${"), "}"), true
}

func (m marked) step(step string) (marked, bool) {
	switch value := m.value.(type) {
	case map[string]any:
		_, there := value[step]
		return m.member(step), there
	case []any:
		if n, err := strconv.Atoi(step); err == nil && n >= 0 && n < len(value) {
			return m.entry(n), true
		}
	}
	return marked{}, false
}

// interpolationsIn splits a string. An unterminated reference is plain: the language reports the error.
func interpolationsIn(text string) []part {
	var parts []part
	start := 0
	plain := func(end int) {
		if end > start {
			parts = append(parts, part{text: text[start:end]})
		}
	}
	for i := 0; i < len(text); {
		switch {
		case strings.HasPrefix(text[i:], "$$"): // a dollar
			i += 2
		case strings.HasPrefix(text[i:], "${"):
			steps, size := stepsIn(text[i+2:])
			if size < 0 {
				i += 2
				continue
			}
			plain(i)
			i += 2 + size
			parts, start = append(parts, part{text: text[i-size-2 : i], steps: steps}), i
		default:
			i++
		}
	}
	plain(len(text))
	return parts
}

// stepsIn returns the steps of a reference and its length including the closing brace; negative if unterminated.
func stepsIn(text string) (steps []string, size int) {
	for i := 0; i < len(text); {
		switch text[i] {
		case '}':
			return steps, i + 1
		case '.', ']':
			i++
		case '[':
			step, end := subscriptIn(text, i+1)
			if end < 0 {
				return nil, -1
			}
			steps, i = append(steps, step), end
		default:
			end := strings.IndexAny(text[i:], ".[}")
			if end < 0 {
				return nil, -1
			}
			steps, i = append(steps, text[i:i+end]), i+end
		}
	}
	return nil, -1
}

// subscriptIn returns the subscript in brackets that begins at from, and its end.
func subscriptIn(text string, from int) (step string, end int) {
	if !strings.HasPrefix(text[from:], `"`) {
		end = strings.IndexByte(text[from:], ']')
		if end < 0 {
			return "", -1
		}
		return text[from : from+end], from + end
	}
	var key strings.Builder
	for i := from + 1; i < len(text); i++ {
		switch {
		case text[i] == '"':
			return key.String(), i + 1
		case strings.HasPrefix(text[i:], `\"`):
			i++
		}
		key.WriteByte(text[i])
	}
	return "", -1
}

// plainKey matches keys that have no special meaning in a program.
var plainKey = regexp.MustCompile(`^[A-Za-z0-9_./-]+$`)

// expressionOf returns an expression for a partly unknown value at a path.
func expressionOf(m marked, path string) *yamlnode.Node {
	if !AnyMarked(m.unknown) {
		return scalar("${" + path + "}")
	}
	if m.unknown == true {
		return scalar(unknownValue)
	}
	switch value := m.value.(type) {
	case map[string]any:
		names := slices.Sorted(maps.Keys(value))
		if slices.ContainsFunc(names, func(name string) bool { return !plainKey.MatchString(name) }) {
			break
		}
		object := &yamlnode.Node{Kind: yamlnode.MappingNode}
		for _, name := range names {
			object.Content = append(object.Content, scalar(name), expressionOf(m.member(name), path+`["`+name+`"]`))
		}
		return object
	case []any:
		list := &yamlnode.Node{Kind: yamlnode.SequenceNode}
		for n := range value {
			list.Content = append(list.Content, expressionOf(m.entry(n), path+"["+strconv.Itoa(n)+"]"))
		}
		return list
	}
	return scalar(unknownValue)
}
