package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	yamlnode "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/internal/plan/text"
)

// document is one of those in a file.
type document struct {
	file string
	// number counts from one, and offset is how many lines of the file come before the document.
	number, offset int
	raw            []byte
	lines          yamlnode.Node
}

// split cuts a file into documents: YAML at its separators, JSON after each value. Documents with nothing in them are left out and
// counted.
func split(file File) []*document {
	var found []*document
	add := func(offset int, raw []byte) {
		found = append(found, &document{file: file.Name, number: len(found) + 1, offset: offset, raw: raw})
	}
	if trimmed := bytes.TrimSpace(file.Content); len(trimmed) > 0 && trimmed[0] == '{' {
		splitJSON(file.Content, add)
	} else {
		splitYAML(file.Content, add)
	}
	kept := found[:0]
	for _, one := range found {
		if !isBlank(one.raw) {
			kept = append(kept, one)
		}
	}
	return kept
}

func splitYAML(content []byte, add func(offset int, raw []byte)) {
	start, offset, line := 0, 0, 0
	at := 0
	for row := range bytes.Lines(content) {
		line++
		at += len(row)
		if !bytes.HasPrefix(row, []byte("---")) || len(row) > 3 && !bytes.ContainsRune([]byte(" \t\r\n"), rune(row[3])) {
			continue
		}
		before := content[start : at-len(row)]
		if start > 0 || !isBlank(before) { // what comes before the first separator may be nothing but comments
			add(offset, before)
		}
		start, offset = at, line
	}
	add(offset, content[start:])
}

func splitJSON(content []byte, add func(offset int, raw []byte)) {
	decoder := json.NewDecoder(bytes.NewReader(content))
	start := 0
	for {
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			add(bytes.Count(content[:start], []byte("\n")), content[start:]) // decoding it reports the error
			return
		}
		end := int(decoder.InputOffset())
		add(bytes.Count(content[:start], []byte("\n")), content[start:end])
		start = end
	}
}

// isBlank reports whether there are only comments.
func isBlank(raw []byte) bool {
	for line := range bytes.Lines(raw) {
		trimmed := bytes.TrimSpace(line)
		if len(trimmed) > 0 && trimmed[0] != '#' && !bytes.Equal(trimmed, []byte("...")) {
			return false
		}
	}
	return true
}

var yamlLine = regexp.MustCompile(`\bline (\d+): `)

// decode returns the document as JSON. Duplicate keys are refused.
func (d *document) decode() ([]byte, *Problem) {
	raw, err := yaml.YAMLToJSONStrict(d.raw)
	if err == nil {
		err = yamlnode.Unmarshal(d.raw, &d.lines)
	}
	if err == nil {
		return raw, nil
	}
	reason := text.OneLine(err.Error())
	line := d.offset + 1
	if match := yamlLine.FindStringSubmatch(reason); match != nil {
		within, _ := strconv.Atoi(match[1])
		line, reason = d.offset+within, strings.Replace(reason, match[0], "", 1)
	}
	return nil, &Problem{File: d.file, Document: d.number, Line: line, Problem: "is neither YAML nor JSON: " + reason, Fix: "correct it"}
}

// step matches one step of a path: a name, an index, or a key in quotes.
var step = regexp.MustCompile(`\[(\d+)\]|\["((?:[^"\\]|\\.)*)"\]|([^.\[\]]+)`)

// line returns the line of a field, or of the nearest of its parents that is there.
func (d *document) line(path string) int {
	node := &d.lines
	if node.Kind == yamlnode.DocumentNode && len(node.Content) == 1 {
		node = node.Content[0]
	}
	line := node.Line
	for _, found := range step.FindAllStringSubmatch(path, -1) {
		child, at := childOf(node, found[1], found[2]+found[3])
		if child == nil {
			break
		}
		node, line = child, at
	}
	return d.offset + max(line, 1)
}

// childOf returns an entry of a map or a list, and the line where it begins; nil where there is none.
func childOf(node *yamlnode.Node, index, name string) (*yamlnode.Node, int) {
	if node.Kind == yamlnode.AliasNode {
		node = node.Alias
	}
	if index != "" {
		if at, err := strconv.Atoi(index); err == nil && node.Kind == yamlnode.SequenceNode && at < len(node.Content) {
			return node.Content[at], node.Content[at].Line
		}
		return nil, 0
	}
	if node.Kind != yamlnode.MappingNode {
		return nil, 0
	}
	// A field may be written in another case than messages name it in.
	for _, same := range []func(a, b string) bool{func(a, b string) bool { return a == b }, strings.EqualFold} {
		for i := 0; i+1 < len(node.Content); i += 2 {
			if same(node.Content[i].Value, name) {
				return node.Content[i+1], node.Content[i].Line
			}
		}
	}
	return nil, 0
}

// item is an object in a document, which may be one of a list.
type item struct {
	*document
	// under is where it is in the document: "items[2]", or empty.
	under string
	raw   []byte
	meta  header
}

// header is what every object has.
type header struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Namespace    string `json:"namespace"`
		Name         string `json:"name"`
		GenerateName string `json:"generateName"`
	} `json:"metadata"`
}

// title names the object.
func (h header) title() string {
	name := h.Metadata.Name
	if name == "" {
		name = h.Metadata.GenerateName
	}
	if h.Metadata.Namespace != "" && name != "" {
		name = h.Metadata.Namespace + "/" + name
	}
	return strings.TrimSpace(h.Kind + " " + name)
}

// problem returns one at a field of the object.
func (i *item) problem(field, problem, fix string) *Problem {
	path := field
	if i.under != "" {
		path = i.under + "." + field
	}
	return &Problem{File: i.file, Document: i.number, Line: i.line(path), Object: i.meta.title(), Field: field, Problem: problem, Fix: fix}
}

// maxNesting bounds lists in lists.
const maxNesting = 4

// itemsOf returns the objects of a document.
func itemsOf(d *document) ([]*item, Problems) {
	raw, failed := d.decode()
	if failed != nil {
		return nil, Problems{failed}
	}
	return openItem(&item{document: d, raw: raw}, 0)
}

// openItem returns the object itself, or those of the list that it is.
func openItem(one *item, depth int) ([]*item, Problems) {
	var read struct {
		header
		Items []json.RawMessage `json:"items"`
	}
	var wrong *json.UnmarshalTypeError
	switch err := json.Unmarshal(one.raw, &read); {
	case errors.As(err, &wrong) && wrong.Field != "":
		return nil, Problems{one.problem(wrong.Field, fmt.Sprintf("a %s does not fit; its type is %s", wrong.Value, wrong.Type), "correct it")}
	case errors.As(err, &wrong):
		return nil, Problems{one.problem("", "an object is required, but it is of the type "+wrong.Value, "write apiVersion, kind, metadata and spec")}
	case err != nil:
		return nil, Problems{one.problem("", err.Error(), "correct it")}
	}
	one.meta = read.header
	switch {
	case read.Kind == "" || read.APIVersion == "":
		return nil, Problems{one.problem("", "apiVersion and kind are required", "write apiVersion: machine.openshift.io/v1beta1 and kind: MachineSet")}
	case !strings.HasSuffix(read.Kind, "List") || read.Items == nil:
		return []*item{one}, nil
	case depth == maxNesting:
		return nil, Problems{one.problem("", fmt.Sprintf("lists are nested more than %d deep", maxNesting), "take them apart")}
	}
	var found []*item
	var problems Problems
	for n, raw := range read.Items {
		under := fmt.Sprintf("items[%d]", n)
		if one.under != "" {
			under = one.under + "." + under
		}
		inner, failed := openItem(&item{document: one.document, under: under, raw: raw}, depth+1)
		found, problems = append(found, inner...), append(problems, failed...)
	}
	return found, problems
}
