package preview

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

	"github.com/machine-iac/machine-iac-operator/internal/inspect/print"
)

type document struct {
	file string
	// number counts from one; offset is the number of lines before the document.
	number, offset int
	raw            []byte
	lines          yamlnode.Node
}

// split cuts a file into documents: YAML at its separators, JSON after each value. It skips and counts empty documents.
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
		if !bytes.HasPrefix(row, []byte("---")) || len(row) > 3 &&
			!bytes.ContainsRune([]byte(" \t\r\n"), rune(row[3])) {
			continue
		}
		before := content[start : at-len(row)]
		if start > 0 || !isBlank(before) { // the part before the first separator may hold only comments
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
			add(bytes.Count(content[:start], []byte("\n")), content[start:]) // decoding reports the error
			return
		}
		end := int(decoder.InputOffset())
		add(bytes.Count(content[:start], []byte("\n")), content[start:end])
		start = end
	}
}

// isBlank reports whether a document has only comments and white space.
func isBlank(raw []byte) bool {
	for line := range bytes.Lines(raw) {
		trimmed := bytes.TrimSpace(line)
		if len(trimmed) > 0 && trimmed[0] != '#' && !bytes.Equal(trimmed, []byte("...")) {
			return false
		}
	}
	return true
}

// duplicateKey matches the YAML parser's message about a key that a mapping has twice.
var duplicateKey = regexp.MustCompile(`(?:mapping )?key ("[^"]*") already (?:set in map|defined)`)

var yamlLine = regexp.MustCompile(`\bline (\d+): `)

// decode returns the document as JSON. It rejects duplicate keys.
func (d *document) decode() ([]byte, *Problem) {
	raw, err := yaml.YAMLToJSONStrict(d.raw)
	if err == nil {
		err = yamlnode.Unmarshal(d.raw, &d.lines)
	}
	if err == nil {
		return raw, nil
	}
	reason := print.Collapse(err.Error())
	line := d.offset + 1
	if match := yamlLine.FindStringSubmatch(reason); match != nil {
		within, _ := strconv.Atoi(match[1])
		line, reason = d.offset+within, strings.Replace(reason, match[0], "", 1)
	}
	if twice := duplicateKey.FindStringSubmatch(reason); twice != nil {
		return nil, &Problem{File: d.file, Document: d.number, Line: line,
			Problem: fmt.Sprintf("key %s is set twice", twice[1]), Fix: "keep one"}
	}
	return nil, &Problem{File: d.file, Document: d.number, Line: line, Problem: "is neither YAML nor JSON: " + reason,
		Fix: "correct it"}
}

// step matches one step of a path: a name, an index, or a quoted key.
var step = regexp.MustCompile(`\[(\d+)\]|\["((?:[^"\\]|\\.)*)"\]|([^.\[\]]+)`)

// line returns the line of a field, or of its nearest existing parent.
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

// childOf returns an entry of a map or list and the line where it begins, or nil.
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
	// Messages may name a field in another case than the file.
	for _, same := range []func(a, b string) bool{func(a, b string) bool { return a == b }, strings.EqualFold} {
		for i := 0; i+1 < len(node.Content); i += 2 {
			if same(node.Content[i].Value, name) {
				return node.Content[i+1], node.Content[i].Line
			}
		}
	}
	return nil, 0
}

// item is an object in a document, or in a list in it.
type item struct {
	*document
	// under is the object's path in the document, such as "items[2]", or empty.
	under string
	raw   []byte
	meta  header
}

type header struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Namespace    string `json:"namespace"`
		Name         string `json:"name"`
		GenerateName string `json:"generateName"`
	} `json:"metadata"`
}

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

// problem returns a problem with a field of the object.
func (i *item) problem(field, problem, fix string) *Problem {
	path := field
	if i.under != "" {
		path = i.under + "." + field
	}
	return &Problem{File: i.file, Document: i.number, Line: i.line(path), Object: i.meta.title(), Field: field,
		Problem: problem, Fix: fix}
}

// maxNesting bounds nested lists.
const maxNesting = 4

func itemsOf(d *document) ([]*item, Problems) {
	raw, failed := d.decode()
	if failed != nil {
		return nil, Problems{failed}
	}
	return openItem(&item{document: d, raw: raw}, 0)
}

// openItem returns the object itself, or the items of a list.
func openItem(one *item, depth int) ([]*item, Problems) {
	var read struct {
		header
		Items []json.RawMessage `json:"items"`
	}
	var wrong *json.UnmarshalTypeError
	switch err := json.Unmarshal(one.raw, &read); {
	case errors.As(err, &wrong) && wrong.Field != "":
		return nil, Problems{one.problem(wrong.Field,
			fmt.Sprintf("a %s does not fit; its type is %s", wrong.Value, wrong.Type), "correct it")}
	case errors.As(err, &wrong):
		return nil, Problems{one.problem("", "an object is required, but it is of the type "+wrong.Value,
			"write apiVersion, kind, metadata and spec")}
	case err != nil:
		return nil, Problems{one.problem("", err.Error(), "correct it")}
	}
	one.meta = read.header
	switch {
	case read.Kind == "" || read.APIVersion == "":
		return nil, Problems{one.problem("", "apiVersion and kind are required",
			"write apiVersion: machine.openshift.io/v1beta1 and kind: MachineSet")}
	case !strings.HasSuffix(read.Kind, "List") || read.Items == nil:
		return []*item{one}, nil
	case depth == maxNesting:
		return nil, Problems{one.problem("", fmt.Sprintf("lists are nested more than %d deep", maxNesting),
			"take them apart")}
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
