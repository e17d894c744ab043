package repeat

import (
	"fmt"
	"regexp"
	"strings"

	yamlnode "go.yaml.in/yaml/v3"
)

var loopName = regexp.MustCompile(`^[a-z][a-zA-Z0-9_]*$`)

// readLoop parses the loop of an each: its name and its list. fault says what is wrong and how to
// fix it, or is empty.
func readLoop(loop *yamlnode.Node) (name string, of reference, fault string) {
	const fix = "; write each: {NAME: ${locals.LIST}}"
	if loop == nil || loop.Kind != yamlnode.MappingNode {
		return "", of, "has an each that is not an object" + fix
	}
	for i := 0; i+1 < len(loop.Content); i += 2 {
		key, value := loop.Content[i].Value, loop.Content[i+1]
		read, ok := whole(value.Value)
		switch {
		case key == makeField:
		case name != "":
			return "", of, "has an each with the names " + name + " and " + key + "; nest two each instead"
		case !loopName.MatchString(key) || key == localsRoot:
			return "", of, fmt.Sprintf("has an each with the name %q; use letters and digits, starting with a letter", key)
		case value.Kind != yamlnode.ScalarNode || !ok || read.root != localsRoot || len(read.steps) == 0:
			return "", of, "has an each that does not refer to locals" + fix
		default:
			name, of = key, read
		}
	}
	if name == "" {
		return "", of, "has an each without a list" + fix
	}
	return name, of, ""
}

// Fault is a problem that prevents a program from being expanded.
type Fault struct {
	// Line is its line, and What the resource or variable that contains it.
	Line int
	What string
	// Problem says what is wrong and how to fix it.
	Problem string
}

// Faults returns the problems in a program's repetitions that do not depend on the locals.
func Faults(document *yamlnode.Node) []Fault {
	var found []Fault
	names := map[string]bool{}
	var repeated []Fault
	for _, name := range sections {
		entries := sectionOf(document, name)
		for i := 0; entries != nil && i+1 < len(entries.Content); i += 2 {
			key, value := entries.Content[i], entries.Content[i+1]
			what := name + "." + key.Value
			if loop := loopOf(name, value); loop != nil {
				repeated = append(repeated, Fault{Line: key.Line, What: what, Problem: key.Value})
				if _, _, fault := readLoop(loop); fault != "" {
					found = append(found, Fault{Line: loop.Line, What: what, Problem: fault})
				}
			} else if name != "outputs" {
				names[key.Value] = true
			}
			found = append(found, functionFaults(what, value)...)
		}
	}
	for _, one := range repeated {
		for name := range names {
			if rest, starts := strings.CutPrefix(name, one.Problem); starts && number.MatchString(rest) {
				found = append(found, Fault{Line: one.Line, What: one.What,
					Problem: "is repeated, and one of its copies is called " +
						name + ", a name that is already used; choose another name"})
			}
		}
	}
	return found
}

// functionFaults returns the problems in the functions below a node.
func functionFaults(what string, node *yamlnode.Node) []Fault {
	var found []Fault
	if node.Kind == yamlnode.MappingNode && field(node, Function) != nil {
		loop := field(node, Function)
		switch _, _, fault := readLoop(loop); {
		case !isFunction(node):
			found = append(found, Fault{Line: node.Line, What: what,
				Problem: "has " + Function + " beside other fields; it must be the only one"})
		case fault != "":
			found = append(found, Fault{Line: loop.Line, What: what, Problem: fault})
		case field(loop, makeField) == nil:
			found = append(found, Fault{Line: loop.Line, What: what,
				Problem: "has " + Function + " without make; add what is to be repeated"})
		}
	}
	for _, inner := range node.Content {
		found = append(found, functionFaults(what, inner)...)
	}
	return found
}
