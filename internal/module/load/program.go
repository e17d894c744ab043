package load

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	yamlnode "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/contract"
)

// runtimeYAML is the runtime of programs that are read here. Programs of other runtimes are code.
const runtimeYAML = "yaml"

// providerTypePrefix starts the types of providers.
const providerTypePrefix = "pulumi:providers:"

// program is a Pulumi.yaml.
type program struct {
	file    string
	fields  []yamlField
	runtime string
	// runtimeOptions reports whether the runtime has options.
	runtimeOptions bool
	resources      []programResource
	// calls are the package functions that it calls.
	calls []yamlText
	// document is the whole program.
	document yamlnode.Node
}

// yamlField is a field of a YAML object.
type yamlField struct {
	name  string
	line  int
	value *yamlnode.Node
}

// yamlText is a text with its line.
type yamlText struct {
	text string
	line int
}

type programResource struct {
	yamlField
	typ    string
	fields []yamlField
}

func (p *program) isYAML() bool { return p.runtime == runtimeYAML }

// field returns a top-level field, or nil.
func (p *program) field(name string) *yamlField { return fieldOf(p.fields, name) }

func fieldOf(fields []yamlField, name string) *yamlField {
	if at := slices.IndexFunc(fields, func(f yamlField) bool { return f.name == name }); at >= 0 {
		return &fields[at]
	}
	return nil
}

// fieldsOf returns the fields of an object, or none.
func fieldsOf(node *yamlnode.Node) []yamlField {
	if node == nil || node.Kind != yamlnode.MappingNode {
		return nil
	}
	fields := make([]yamlField, 0, len(node.Content)/2)
	for i := 0; i+1 < len(node.Content); i += 2 {
		fields = append(fields, yamlField{name: node.Content[i].Value, line: node.Content[i].Line, value: node.Content[i+1]})
	}
	return fields
}

// text returns the text of a field, or "" if it is not a string.
func (f *yamlField) text() string {
	if f == nil || f.value.Kind != yamlnode.ScalarNode {
		return ""
	}
	return f.value.Value
}

// readProgram reads a Pulumi.yaml. It reports errors and returns nil.
func readProgram(files module.Files, name string, found *contract.Report) *program {
	content, exists := files[name]
	if !exists {
		found.Add(contract.Breach{File: name, Problem: "is missing", Fix: "write the program, or name its runtime"})
		return nil
	}
	var document yamlnode.Node
	if err := decodeYAML(content, &document); err != nil {
		found.InvalidYAML(name, err)
		return nil
	}
	if len(document.Content) != 1 || document.Content[0].Kind != yamlnode.MappingNode {
		found.Add(contract.Breach{File: name, Problem: "is not a YAML object",
			Fix: "write the project's name, runtime, config, resources and outputs", Unsafe: true})
		return nil
	}
	read := &program{file: name, fields: fieldsOf(document.Content[0]), document: document}
	runtime := read.field("runtime")
	read.runtime = runtime.text()
	if runtime != nil && runtime.value.Kind == yamlnode.MappingNode {
		inner := fieldsOf(runtime.value)
		read.runtime, read.runtimeOptions = fieldOf(inner, "name").text(), fieldOf(inner, "options") != nil
	}
	if resources := read.field("resources"); resources != nil {
		for _, one := range fieldsOf(resources.value) {
			fields := fieldsOf(one.value)
			read.resources = append(read.resources,
				programResource{yamlField: one, fields: fields, typ: fieldOf(fields, "type").text()})
		}
	}
	read.calls = callsIn(document.Content[0])
	return read
}

// functionCall matches the short form of a call of a package function.
var functionCall = regexp.MustCompile(`^(?i:fn::)([^:]+:[^:]+(?::[^:]+)?)$`)

// callsIn returns the package functions that a program calls.
func callsIn(node *yamlnode.Node) []yamlText {
	var calls []yamlText
	walkFields(node, func(one yamlField) {
		if strings.EqualFold(one.name, "fn::invoke") {
			for _, function := range fieldsOf(one.value) {
				if strings.EqualFold(function.name, "function") { // Pulumi ignores case
					calls = append(calls, yamlText{text: function.text(), line: function.line})
				}
			}
		} else if match := functionCall.FindStringSubmatch(one.name); match != nil {
			calls = append(calls, yamlText{text: match[1], line: one.line})
		}
	})
	return calls
}

// walkFields visits the fields of every object below a node.
func walkFields(node *yamlnode.Node, visit func(yamlField)) {
	if node == nil {
		return
	}
	for _, one := range fieldsOf(node) {
		visit(one)
		walkFields(one.value, visit)
	}
	if node.Kind == yamlnode.SequenceNode {
		for _, item := range node.Content {
			walkFields(item, visit)
		}
	}
}

// instance returns the address of the instance as in Pulumi's reports, or "" if a program in
// another language determines it.
func (p *program) instance(packages []module.Package) string {
	if !p.isYAML() {
		return ""
	}
	for _, one := range p.resources {
		if one.name == instanceName && one.typ != "" {
			return fullType(one.typ, packages) + "." + instanceName
		}
	}
	return ""
}

// packageOf returns the package that a type or a function belongs to.
func packageOf(token string) string {
	name, _, _ := strings.Cut(token, ":")
	if name == "pulumi" {
		if bare, is := strings.CutPrefix(token, providerTypePrefix); is {
			return bare
		}
	}
	return name
}

// fullType returns a resource type as the engine has it: programs may omit the module and the part
// that the bridge repeats.
func fullType(token string, packages []module.Package) string {
	name, _, _ := strings.Cut(token, ":")
	isBridged := slices.ContainsFunc(packages, func(one module.Package) bool {
		return one.Name == name &&
			one.Provider != nil
	})
	return typeOf(token, isBridged)
}

// typeOf returns a type with its module, and with the part that a bridge repeats.
func typeOf(token string, isBridged bool) string {
	parts := strings.Split(token, ":")
	if len(parts) == 2 {
		parts = []string{parts[0], "index", parts[1]}
	}
	if len(parts) == 3 && isBridged && !strings.Contains(parts[1], "/") {
		first, size := utf8.DecodeRuneInString(parts[2])
		parts[1] = path.Join(parts[1], string(unicode.ToLower(first))+parts[2][size:])
	}
	return strings.Join(parts, ":")
}

// add reports a breach at a line of the program.
func (p *program) add(found *contract.Report, line int, what, problem, fix string) {
	found.Add(contract.Breach{File: p.file, Line: line, What: what, Problem: problem, Fix: fix})
}

// unsafe reports an unsafe breach at a line of the program.
func (p *program) unsafe(found *contract.Report, line int, what, problem, fix string) {
	found.Add(contract.Breach{File: p.file, Line: line, What: what, Problem: problem, Fix: fix, Unsafe: true})
}

// kindOf describes the value of a field, for messages.
func (f *yamlField) kind() string {
	switch f.value.Kind {
	case yamlnode.MappingNode:
		return "an object"
	case yamlnode.SequenceNode:
		return "a list"
	default:
		return fmt.Sprintf("%q", f.value.Value)
	}
}

// decodeYAML parses YAML strictly into nodes.
func decodeYAML(content []byte, into *yamlnode.Node) error {
	if _, err := yaml.YAMLToJSONStrict(content); err != nil {
		return err
	}
	return yamlnode.Unmarshal(content, into)
}
