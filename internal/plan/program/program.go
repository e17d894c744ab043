package program

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
	"github.com/machine-iac/machine-iac-operator/internal/plan/offline"
)

// The names that a program gets beside its own.
const (
	projectFile = "Pulumi.yaml"
	// unknownResource is what is yet to be made, and the package that has it.
	unknownResource = "offline"
	unknownType     = unknownResource + ":index:Unknown"
	unknownValue    = "${" + unknownResource + ".value}"
)

// programSections are those with expressions.
var programSections = []string{"resources", "variables", "outputs"}

// The names of a stack's configuration.
const (
	configMachine  = "machine"
	configSpec     = "provider_spec"
	configUserData = "user_data"
	configCluster  = "cluster"
	configLocals   = "locals"
)

// program is a stack's program as it is planned: what it would read is unknown in it, and so are variables that are not known yet.
type program struct {
	files   fs.FS
	project string
	root    yamlnode.Node
}

// newProgram reads a stack's program.
func newProgram(files fs.FS) (*program, error) {
	raw, err := fs.ReadFile(files, projectFile)
	if err != nil {
		return nil, fmt.Errorf("reading the program: %w", err)
	}
	p := &program{files: files}
	if err := yamlnode.Unmarshal(raw, &p.root); err != nil {
		return nil, fmt.Errorf("reading %s: %w", projectFile, err)
	}
	if p.root.Kind != yamlnode.DocumentNode || len(p.root.Content) != 1 || p.root.Content[0].Kind != yamlnode.MappingNode {
		return nil, fmt.Errorf("reading %s: it is no map; write name, runtime and resources", projectFile)
	}
	top := p.root.Content[0]
	if name := at(top, "name"); name != nil {
		p.project = name.Value
	}
	if runtime := runtimeOf(top); runtime != "yaml" {
		return nil, fmt.Errorf("planning a stack whose runtime is %q: only programs in YAML can be planned without a cluster, "+
			"because unknown values cannot be passed to others; see its examples and tests", runtime)
	}
	return p, nil
}

// putOff replaces what a program reads by unknown values, and returns what that is.
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

// putOffCalls makes each function that is called under a node return an unknown value, and returns the functions.
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

// calledBy returns the function of a provider that a node calls; empty where it calls none. Those of the language itself have no colon
// in their names.
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

// inputs are what a program is planned with.
type inputs struct {
	files     fs.FS
	variables []byte
	// secret are the names of the variables that must not show.
	secret []string
	// reads are what an update would read.
	reads []string
	// outputs are where the program's outputs belong, by name: the steps to each value.
	outputs map[string][]any
}

// with returns the program for one input: what is known of it is configuration, and so data; references to what is unknown are to a
// resource that is yet to be made. locals are the stack's, empty where it has none.
func (p *program) with(in offline.Input, locals marked) (*inputs, error) {
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

// machineOf marks what is unknown of a Machine.
func machineOf(machine map[string]any, unknown offline.Unknown) marked {
	marks := map[string]any{}
	for name, isUnknown := range map[string]bool{"name": unknown.Name, "uid": unknown.UID, "cluster_id": unknown.ClusterID} {
		if isUnknown {
			marks[name] = true
			machine[name] = nil
		}
	}
	return marked{value: machine, unknown: marks}
}

// replaced are files of which one has another content.
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
