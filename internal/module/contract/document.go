package contract

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	yamlnode "go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	strictjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
)

var (
	yamlLine    = regexp.MustCompile(`\bline (\d+): `)
	strictField = regexp.MustCompile(`field "([^"]+)"`)
)

// Document is a YAML file of a module while it is checked.
type Document struct {
	*Report
	// File is the path inside the module.
	File string
	// Kind is the kind of machine-iac.io/v1alpha1 in the file; empty if the file is of another format.
	Kind  string
	lines yamlnode.Node
}

// InvalidYAML adds a breach for a file that is not valid YAML.
func (r *Report) InvalidYAML(file string, err error) {
	line := 0
	if match := yamlLine.FindStringSubmatch(err.Error()); match != nil {
		line, _ = strconv.Atoi(match[1])
	}
	r.Add(Breach{File: file, Line: line, Problem: "is not valid YAML: " + OneLine(err.Error()),
		Unsafe: true}) // unsafe: an engine may be able to read it
}

// hugeQuantity matches absurd quantities in JSON. For a large exponent, the library computes all
// digits.
var hugeQuantity = regexp.MustCompile(`"(cpu|memory)":"?(?:[^",}\]]{65}|[^",}\]]*[eE][+-]?[0-9]{3})`)

// Decode parses the file strictly into a value of the document's kind.
func (d *Document) Decode(content []byte, into any) bool {
	raw, err := yaml.YAMLToJSONStrict(content)
	if err == nil {
		err = yamlnode.Unmarshal(content, &d.lines)
	}
	if err != nil {
		d.InvalidYAML(d.File, err)
		return false
	}
	if found := hugeQuantity.FindSubmatch(raw); found != nil {
		d.Add(Breach{File: d.File, Problem: fmt.Sprintf("has a quantity of %s that is too long or has too large an exponent",
			found[1]), Fix: `write it as "4" or "16Gi"`})
		return false
	}
	strictErrs, err := strictjson.UnmarshalStrict(raw, into)
	if err != nil {
		problem := "does not match its type"
		if d.Kind != "" {
			problem = fmt.Sprintf("does not match the type %s of machine-iac.io/v1alpha1", d.Kind)
		}
		d.Add(Breach{File: d.File, Problem: problem + ": " + OneLine(err.Error())})
		return false
	}
	for _, strictErr := range strictErrs {
		var path string
		if match := strictField.FindStringSubmatch(strictErr.Error()); match != nil {
			path = match[1]
		}
		d.AtField(path, "is invalid: "+strictErr.Error(), "remove it, or correct the spelling")
	}
	return true
}

func (d *Document) checkKind(read metav1.TypeMeta) {
	if read.APIVersion != v1alpha1.GroupVersion.String() {
		d.AtField("apiVersion", fmt.Sprintf("is %q", read.APIVersion), "write "+v1alpha1.GroupVersion.String())
	}
	if read.Kind != d.Kind {
		d.AtField("kind", fmt.Sprintf("is %q", read.Kind), "write "+d.Kind)
	}
}

// AtField adds a breach at a field of the document, or at its nearest existing parent.
func (d *Document) AtField(path, problem, fix string) {
	d.Add(Breach{File: d.File, Line: d.line(path), What: path, Problem: problem, Fix: fix})
}

// UnsafeField is AtField for an unsafe breach.
func (d *Document) UnsafeField(path, problem, fix string) {
	d.Add(Breach{File: d.File, Line: d.line(path), What: path, Problem: problem, Fix: fix, Unsafe: true})
}

func (d *Document) line(path string) int {
	node := &d.lines
	if node.Kind == yamlnode.DocumentNode && len(node.Content) == 1 {
		node = node.Content[0]
	}
	line := 0
	for step := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		child, at, ok := childOf(node, step)
		if !ok {
			break
		}
		node, line = child, at
	}
	return line
}

// childOf returns a child node and the line of its key.
func childOf(node *yamlnode.Node, step string) (child *yamlnode.Node, line int, ok bool) {
	switch node.Kind {
	case yamlnode.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == step {
				return node.Content[i+1], node.Content[i].Line, true
			}
		}
	case yamlnode.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(node.Content) {
			return node.Content[i], node.Content[i].Line, true
		}
	}
	return nil, 0, false
}
