package offline

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	yamlnode "go.yaml.in/yaml/v3"

	"github.com/machine-iac/machine-iac-operator/internal/engine/repeat"
)

// Names that are added to a program.
const (
	projectFile = "Pulumi.yaml"
	// unknownResource names a resource that does not exist yet, and its package.
	unknownResource = "offline"
	unknownType     = unknownResource + ":index:Unknown"
	unknownValue    = "${" + unknownResource + ".value}"
)

// programSections are the sections with expressions.
var programSections = []string{"resources", "variables", "outputs"}

// Names in a stack's configuration.
const (
	configMachine  = "machine"
	configSpec     = "provider_spec"
	configUserData = "user_data"
	configCluster  = "cluster"
	configLocals   = "locals"
)

// program is a stack's program prepared for a plan: what it would read is unknown, and so are unknown variables.
type program struct {
	files   fs.FS
	project string
	root    yamlnode.Node
}

func newProgram(files fs.FS) (*program, error) {
	raw, err := fs.ReadFile(files, projectFile)
	if err != nil {
		return nil, fmt.Errorf("reading the program: %w", err)
	}
	p := &program{files: files}
	if err := yamlnode.Unmarshal(raw, &p.root); err != nil {
		return nil, fmt.Errorf("reading %s: %w", projectFile, err)
	}
	if p.root.Kind != yamlnode.DocumentNode || len(p.root.Content) != 1 ||
		p.root.Content[0].Kind != yamlnode.MappingNode {
		return nil, fmt.Errorf("reading %s: it is no map; write name, runtime and resources", projectFile)
	}
	top := p.root.Content[0]
	if name := at(top, "name"); name != nil {
		p.project = name.Value
	}
	if runtime := runtimeOf(top); runtime != "yaml" {
		return nil, fmt.Errorf("planning a stack whose runtime is %q: only programs in YAML can be planned without a "+
			"cluster, "+
			"because unknown values cannot be passed to others; see its examples and tests", runtime)
	}
	return p, nil
}

// putOff replaces what a program reads by unknown values, and returns the names of what it replaced.
func putOff(top *yamlnode.Node) []string {
	var reads []string
	for _, section := range programSections {
		for name, node := range entriesOf(at(top, section)) {
			reads = append(reads, putOffCalls(name, node)...)
		}
	}
	for name, node := range entriesOf(at(top, "resources")) {
		if get := at(node, "get"); get != nil {
			set(get, "id", scalar(unknownValue))
			reads = append(reads, valueAt(node, "type")+"."+name)
		}
	}
	slices.Sort(reads)
	return slices.Compact(reads)
}

func runtimeOf(top *yamlnode.Node) string {
	runtime := at(top, "runtime")
	if runtime != nil && runtime.Kind == yamlnode.MappingNode {
		runtime = at(runtime, "name")
	}
	if runtime == nil {
		return ""
	}
	return runtime.Value
}

// putOffCalls makes each function call below a node return an unknown value, and returns the functions.
func putOffCalls(name string, node *yamlnode.Node) []string {
	if token := calledBy(node); token != "" {
		*node = *scalar(unknownValue)
		return []string{token + "." + name}
	}
	var reads []string
	for _, inner := range node.Content {
		reads = append(reads, putOffCalls(name, inner)...)
	}
	return reads
}

const functionPrefix = "fn::"

// calledBy returns the provider's function that a node calls, or "". Built-in functions have no colon in their names.
func calledBy(node *yamlnode.Node) string {
	if node.Kind != yamlnode.MappingNode || len(node.Content) != 2 {
		return ""
	}
	name, called := strings.CutPrefix(strings.ToLower(node.Content[0].Value), functionPrefix)
	switch {
	case called && name == "invoke":
		return valueAt(node.Content[1], "function")
	case called && strings.Contains(name, ":"):
		return node.Content[0].Value[len(functionPrefix):]
	}
	return ""
}

// inputs are a program's inputs.
type inputs struct {
	files     fs.FS
	variables []byte
	// secret names the variables to hide.
	secret []string
	// reads are what an update would read.
	reads []string
	// outputs are the steps to each value of the program's outputs, by flattened name.
	outputs map[string][]any
}

// with returns the program for one input. Known values become configuration, hence data; references to unknown values
// lead to a resource that does not exist yet. locals are the stack's, if any.
func (p *program) with(in Input, locals marked) (*inputs, error) {
	var given map[string]json.RawMessage
	if err := json.Unmarshal(in.Variables, &given); err != nil {
		return nil, errors.New("reading the variables: they are no JSON object")
	}
	var known map[string]any
	if err := json.Unmarshal(given[configMachine], &known); err != nil {
		return nil, errors.New("reading the variables: machine is no JSON object")
	}
	copied := clone(&p.root)
	if _, err := repeat.Document(copied, locals.filled()); err != nil {
		return nil, fmt.Errorf("writing out what %s repeats: %w", projectFile, err)
	}
	top := copied.Content[0]
	made := &inputs{reads: putOff(top)}
	machine := machineOf(known, in.Unknown)
	config := map[string]any{configMachine: machine.filled(), configSpec: given[configSpec]}
	variables := map[string]marked{configMachine: machine}
	if cluster, given := given[configCluster]; given {
		config[configCluster] = cluster
	}
	if locals.value != nil {
		config[configLocals], variables[configLocals] = locals.filled(), locals
	}
	for _, section := range programSections {
		if node := at(top, section); node != nil {
			replaceUnknown(node, variables)
		}
	}
	if in.Unknown.UserData {
		dropEntry(at(top, "config"), configUserData)
		set(section(top, "variables"), configUserData, mapping("fn::secret", scalar(unknownValue)))
	} else {
		config[configUserData], made.secret = given[configUserData], []string{configUserData}
	}
	made.outputs = flatten(at(top, "outputs"))
	set(section(top, "resources"), unknownResource, mapping("type", scalar(unknownType)))
	text, err := yamlnode.Marshal(copied)
	if err == nil {
		made.variables, err = json.Marshal(config)
	}
	if err != nil {
		return nil, fmt.Errorf("writing the program: %w", err)
	}
	made.files = replaced{FS: p.files, name: projectFile, content: text}
	return made, nil
}

// machineOf marks the unknown attributes of a Machine.
func machineOf(machine map[string]any, unknown Unknown) marked {
	marks := map[string]any{}
	for name, isUnknown := range map[string]bool{"name": unknown.Name, "uid": unknown.UID,
		"cluster_id": unknown.ClusterID} {
		if isUnknown {
			marks[name] = true
			machine[name] = nil
		}
	}
	return marked{value: machine, unknown: marks}
}

// replaced overlays one file.
type replaced struct {
	fs.FS
	name    string
	content []byte
}

// Open implements fs.FS.
func (r replaced) Open(name string) (fs.File, error) {
	file, err := r.FS.Open(name)
	if err != nil || name != r.name {
		return file, err
	}
	return replacedFile{File: file, content: bytes.NewReader(r.content)}, nil
}

type replacedFile struct {
	fs.File
	content *bytes.Reader
}

// Read implements fs.File.
func (f replacedFile) Read(p []byte) (int, error) { return f.content.Read(p) }
