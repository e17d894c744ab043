package repeat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	yamlnode "go.yaml.in/yaml/v3"
)

const (
	// Field is the field of a repeated resource.
	Field = "each"
	// Function replaces a list of values, or a repeated variable.
	Function = "fn::each"
	// makeField is the field of a function with what is repeated.
	makeField = "make"

	resourcesSection, variablesSection = "resources", "variables"
	// most limits the number of entries that lists can expand to, since a providerSpec can have any
	// length.
	most = 2000
)

var errNoMake = errors.New(Function + " lacks make; add what is to be repeated")

// sections are the sections with expressions. In the first two, each copy of something repeated has
// its own name.
var sections = []string{resourcesSection, variablesSection, "outputs"}

// expansion is a program that is being expanded.
type expansion struct {
	locals any
	// repeated is the number of copies of each repeated resource and variable.
	repeated map[string]int
	made     int
}

// Program returns a program with all repetitions expanded. locals is a JSON object. A program
// without repetitions is returned unchanged. Errors name what is wrong in the program or the
// locals.
func Program(program, locals []byte) ([]byte, error) {
	if !bytes.Contains(program, []byte(Field)) {
		return program, nil
	}
	var document yamlnode.Node
	if err := yamlnode.Unmarshal(program, &document); err != nil {
		return nil, fmt.Errorf("reading the program: %w", err)
	}
	var values any
	if len(locals) > 0 {
		if err := decode(locals, &values); err != nil {
			return nil, errors.New("reading the locals: not valid JSON")
		}
	}
	repeats, err := Document(&document, values)
	if err != nil || !repeats {
		return program, err
	}
	return yamlnode.Marshal(&document)
}

func decode(raw []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	return decoder.Decode(into)
}

// Document expands a program in place, by the locals as decoded from JSON. It reports whether there
// was anything to expand.
func Document(document *yamlnode.Node, locals any) (repeats bool, err error) {
	if !repeatsAnything(document) {
		return false, nil
	}
	x := &expansion{locals: locals, repeated: map[string]int{}}
	for _, name := range sections[:2] {
		if err := x.count(name, sectionOf(document, name)); err != nil {
			return true, err
		}
	}
	for _, name := range sections {
		section := sectionOf(document, name)
		if section == nil {
			continue
		}
		written, err := x.section(name, section)
		if err != nil {
			return true, err
		}
		section.Content = written
	}
	return true, nil
}

// sectionOf returns a top-level object of a program, or nil.
func sectionOf(document *yamlnode.Node, name string) *yamlnode.Node {
	if document.Kind == yamlnode.DocumentNode && len(document.Content) == 1 {
		document = document.Content[0]
	}
	if found := field(document, name); found != nil && found.Kind == yamlnode.MappingNode {
		return found
	}
	return nil
}

// field returns a field of an object, or nil.
func field(node *yamlnode.Node, name string) *yamlnode.Node {
	if node == nil || node.Kind != yamlnode.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == name {
			return node.Content[i+1]
		}
	}
	return nil
}

// repeatsAnything reports whether a program has repetitions.
func repeatsAnything(document *yamlnode.Node) bool {
	if resources := sectionOf(document, resourcesSection); resources != nil {
		for i := 1; i < len(resources.Content); i += 2 {
			if field(resources.Content[i], Field) != nil {
				return true
			}
		}
	}
	return hasFunction(document)
}

func hasFunction(node *yamlnode.Node) bool {
	if isFunction(node) {
		return true
	}
	for _, inner := range node.Content {
		if hasFunction(inner) {
			return true
		}
	}
	return false
}

func isFunction(node *yamlnode.Node) bool {
	return node.Kind == yamlnode.MappingNode && len(node.Content) == 2 && node.Content[0].Value == Function
}

// loopOf returns the loop of a repeated resource or variable, or nil.
func loopOf(section string, entry *yamlnode.Node) *yamlnode.Node {
	switch {
	case section == resourcesSection:
		return field(entry, Field)
	case section == variablesSection && isFunction(entry):
		return entry.Content[1]
	}
	return nil
}

// count counts the copies of repeated resources or variables.
func (x *expansion) count(section string, entries *yamlnode.Node) error {
	if entries == nil {
		return nil
	}
	for i := 0; i+1 < len(entries.Content); i += 2 {
		loop := loopOf(section, entries.Content[i+1])
		if loop == nil {
			continue
		}
		name := entries.Content[i].Value
		if section == variablesSection && field(loop, makeField) == nil {
			return fmt.Errorf("%s.%s: %w", section, name, errNoMake)
		}
		_, length, err := x.loop(loop, nil)
		if err != nil {
			return fmt.Errorf("%s.%s: %w", section, name, err)
		}
		x.repeated[name] = length
	}
	return nil
}

// loop returns the name of a loop and the length of its list.
func (x *expansion) loop(loop *yamlnode.Node, at numbers) (name string, length int, err error) {
	name, of, fault := readLoop(loop)
	if fault != "" {
		return "", 0, errors.New(fault)
	}
	if _, twice := at[name]; twice {
		return "", 0, fmt.Errorf("an outer each has the name %s too; choose another", name)
	}
	value, err := x.value(of, at)
	if err != nil {
		return "", 0, err
	}
	list, ok := value.([]any)
	if !ok {
		return "", 0, fmt.Errorf("%s is not a list that is known before a run; compute one in locals.tf", of)
	}
	if x.made += len(list); x.made > most {
		return "", 0, fmt.Errorf("the lists that the program repeats something for have more than %d entries; shorten them",
			most)
	}
	return name, len(list), nil
}

// section returns the expanded entries of a section.
func (x *expansion) section(section string, entries *yamlnode.Node) ([]*yamlnode.Node, error) {
	var written []*yamlnode.Node
	for i := 0; i+1 < len(entries.Content); i += 2 {
		key, value := entries.Content[i], entries.Content[i+1]
		loop := loopOf(section, value)
		if loop == nil {
			if err := x.write(value, nil); err != nil {
				return nil, fmt.Errorf("%s.%s: %w", section, key.Value, err)
			}
			written = append(written, key, value)
			continue
		}
		name, _, _ := readLoop(loop)
		for n := range x.repeated[key.Value] {
			body := bodyOf(section, value)
			if err := x.write(body, numbers{name: n}); err != nil {
				return nil, fmt.Errorf("%s.%s: %w", section, key.Value, err)
			}
			named := *key
			named.Value += strconv.Itoa(n)
			written = append(written, &named, body)
		}
	}
	return written, nil
}

// bodyOf returns a copy of what is repeated.
func bodyOf(section string, entry *yamlnode.Node) *yamlnode.Node {
	if section == variablesSection {
		return clone(field(entry.Content[1], makeField))
	}
	body := clone(entry)
	for i := 0; i+1 < len(body.Content); i += 2 {
		if body.Content[i].Value == Field {
			body.Content = append(body.Content[:i:i], body.Content[i+2:]...)
			break
		}
	}
	return body
}

// write expands the repetitions below a node and sets numbers into its references.
func (x *expansion) write(node *yamlnode.Node, at numbers) error {
	if isFunction(node) {
		items, err := x.items(node, at)
		*node = yamlnode.Node{Kind: yamlnode.SequenceNode, Content: items, Line: node.Line}
		return err
	}
	if node.Kind == yamlnode.ScalarNode {
		text, err := x.text(node.Value, at)
		node.Value = text
		return err
	}
	var content []*yamlnode.Node
	for _, inner := range node.Content {
		if node.Kind == yamlnode.SequenceNode && isFunction(inner) {
			items, err := x.items(inner, at)
			if err != nil {
				return err
			}
			content = append(content, items...)
			continue
		}
		if err := x.write(inner, at); err != nil {
			return err
		}
		content = append(content, inner)
	}
	node.Content = content
	return nil
}

// items returns the expansion of a function.
func (x *expansion) items(function *yamlnode.Node, at numbers) ([]*yamlnode.Node, error) {
	name, length, err := x.loop(function.Content[1], at)
	if err != nil {
		return nil, err
	}
	body := field(function.Content[1], makeField)
	if body == nil {
		return nil, errNoMake
	}
	inside := numbers{}
	maps.Copy(inside, at)
	items := make([]*yamlnode.Node, 0, length)
	for n := range length {
		inside[name] = n
		one := clone(body)
		if err := x.write(one, inside); err != nil {
			return nil, err
		}
		items = append(items, one)
	}
	return items, nil
}

// text returns a text with numbers in its references, and the names of copies.
func (x *expansion) text(text string, at numbers) (string, error) {
	var written strings.Builder
	for i := 0; i < len(text); {
		switch {
		case strings.HasPrefix(text[i:], "$$"): // an escaped dollar
			written.WriteString("$$")
			i += 2
		case strings.HasPrefix(text[i:], "${"):
			read, size, ok := parseReference(text[i+2:])
			if !ok { // Pulumi reports what is wrong with it
				written.WriteString("${")
				i += 2
				continue
			}
			read, err := x.named(read, at)
			if err != nil {
				return text, err
			}
			written.WriteString("${" + read.String() + "}")
			i += 2 + size
		default:
			written.WriteByte(text[i])
			i++
		}
	}
	return written.String(), nil
}

// named returns a reference with numbers, and with the name of the copy that it refers to.
func (x *expansion) named(r reference, at numbers) (reference, error) {
	made, err := x.resolved(r, at)
	if err != nil {
		return made, err
	}
	length, repeated := x.repeated[made.root]
	if !repeated {
		return made, nil
	}
	if len(made.steps) == 0 || !made.steps[0].indexed {
		return made, fmt.Errorf("${%s} refers to all copies of %s; refer to one of them, as ${%s[NAME]}", r, r.root, r.root)
	}
	n, err := strconv.Atoi(made.steps[0].index)
	if err != nil || n >= length {
		return made, fmt.Errorf("${%s} refers to index %s of %s, which has %d copies; compute another index in locals.tf",
			r, made.steps[0].index, r.root, length)
	}
	made.root += made.steps[0].index
	made.steps = made.steps[1:]
	return made, nil
}

func clone(node *yamlnode.Node) *yamlnode.Node {
	if node == nil {
		return nil
	}
	copied := *node
	copied.Content = make([]*yamlnode.Node, len(node.Content))
	for n, inner := range node.Content {
		copied.Content[n] = clone(inner)
	}
	return &copied
}
