package batch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// Module is a module that can be called for several Machines.
type Module struct {
	// settings, providers and declarations are the module's terraform blocks, provider blocks and
	// variables as HCL.
	settings, providers, declarations []byte
	// variables are the sorted names of the variables.
	variables []string
	// sensitive are the sorted names of the sensitive outputs.
	sensitive []string
	// needs are the paths of the variables that the providers' configuration depends on.
	needs [][]string
	// called are the files that replace the module's own when it is called, by name.
	called map[string][]byte
}

// calledKinds are the blocks that mean the same in a called module as in a root module.
var calledKinds = []string{"variable", "locals", "resource", "data", "output", "check"}

// NewModule parses a root module. The error says why Machines with this module cannot share a
// process.
func NewModule(files fs.FS) (*Module, error) {
	names, err := fs.Glob(files, "*.tf")
	if err != nil {
		return nil, fmt.Errorf("listing the module's files: %w", err)
	}
	m := &Module{called: map[string][]byte{}}
	for _, name := range names {
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("reading the module: %w", err)
		}
		if err := m.read(name, content); err != nil {
			return nil, err
		}
	}
	slices.Sort(m.variables)
	slices.Sort(m.sensitive)
	slices.SortFunc(m.needs, slices.Compare) // attributes are unordered
	return m, nil
}

// read adds a file to the module.
func (m *Module) read(name string, content []byte) error {
	parsed, diags := hclsyntax.ParseConfig(content, name, hcl.InitialPos)
	if diags.HasErrors() {
		return fmt.Errorf("reading the module: %w", diags)
	}
	body := parsed.Body.(*hclsyntax.Body) // the type of every file in HCL's native syntax
	if err := checkReferences(body); err != nil {
		return err
	}
	var left []hcl.Range
	for _, block := range body.Blocks {
		at := hcl.RangeBetween(block.TypeRange, block.CloseBraceRange)
		if err := m.add(block, at.SliceBytes(content)); err != nil {
			return fmt.Errorf("%s:%d: %w", name, at.Start.Line, err)
		}
		if block.Type == "provider" {
			left = append(left, at)
		}
	}
	if len(left) == 0 {
		return nil
	}
	var out bytes.Buffer
	from := 0
	for _, at := range left {
		out.Write(content[from:at.Start.Byte])
		from = at.End.Byte
	}
	out.Write(content[from:])
	m.called[name] = out.Bytes()
	return nil
}

// add adds a block to the root module, or checks that the block can be in a called module.
func (m *Module) add(block *hclsyntax.Block, text []byte) error {
	switch block.Type {
	case "terraform":
		for _, inner := range block.Body.Blocks {
			if inner.Type != "required_providers" {
				return fmt.Errorf("terraform has a block %s, which only root modules can have", inner.Type)
			}
		}
		m.settings = appendLine(m.settings, text)
		return nil
	case "provider":
		m.providers = appendLine(m.providers, text)
		return m.addProvider(block)
	case "variable":
		m.declarations = appendLine(m.declarations, text)
		m.variables = append(m.variables, block.Labels[0])
	case "output":
		if isSensitive(block) {
			m.sensitive = append(m.sensitive, block.Labels[0])
		}
	}
	if !slices.Contains(calledKinds, block.Type) {
		return fmt.Errorf("only root modules can have a block %s", block.Type)
	}
	if block.Body.Attributes["ephemeral"] != nil {
		return fmt.Errorf("the %s %s is ephemeral", block.Type, block.Labels[0])
	}
	return nil
}

// isSensitive reports whether an output is sensitive. Engines only accept literal true and false
// there.
func isSensitive(output *hclsyntax.Block) bool {
	attribute := output.Body.Attributes["sensitive"]
	if attribute == nil {
		return false
	}
	value, diags := attribute.Expr.Value(nil)
	return diags.HasErrors() || !value.RawEquals(cty.False)
}

func appendLine(to, text []byte) []byte { return append(append(to, text...), '\n') }

// addProvider records the variables that a provider's configuration depends on. It may depend on
// nothing else, and must be the same for all Machines.
func (m *Module) addProvider(block *hclsyntax.Block) error {
	for _, name := range []string{"alias", "for_each"} {
		if block.Body.Attributes[name] != nil {
			return fmt.Errorf("the provider %q has %s", block.Labels[0], name)
		}
	}
	for _, reference := range referencesOf(block.Body) {
		if reference.RootName() != "var" || len(reference) < 2 {
			return fmt.Errorf("the provider %q refers to %s", block.Labels[0], reference.RootName())
		}
		m.needs = append(m.needs, pathOf(reference[1:]))
	}
	return nil
}

// referencesOf returns the references in the expressions of a body.
func referencesOf(body *hclsyntax.Body) []hcl.Traversal {
	var found []hcl.Traversal
	for _, attribute := range body.Attributes {
		found = append(found, attribute.Expr.Variables()...)
	}
	for _, inner := range body.Blocks {
		found = append(found, referencesOf(inner.Body)...)
	}
	return found
}

// pathOf returns the attribute names of a reference.
func pathOf(steps hcl.Traversal) []string {
	var names []string
	for _, step := range steps {
		attribute, ok := step.(hcl.TraverseAttr)
		if !ok {
			break
		}
		names = append(names, attribute.Name)
	}
	return names
}

// checkReferences rejects references that mean something else in a called module than in a root
// module.
func checkReferences(body *hclsyntax.Body) error {
	for _, reference := range referencesOf(body) {
		root := reference.RootName()
		if root == "terraform" || root == "tofu" {
			return fmt.Errorf("%s:%d: a reference to %s", reference.SourceRange().Filename,
				reference.SourceRange().Start.Line, root)
		}
		if root != "path" || len(reference) < 2 {
			continue
		}
		if step, ok := reference[1].(hcl.TraverseAttr); !ok || step.Name != "module" {
			return fmt.Errorf("%s:%d: a reference to path, other than path.module", reference.SourceRange().Filename,
				reference.SourceRange().Start.Line)
		}
	}
	return nil
}

// Common returns what the variables of Machines in one batch must have in common: their names, and
// the values that providers depend on.
func (m *Module) Common(variables []byte) ([]byte, error) {
	values, err := readVariables(variables)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	var needed []json.RawMessage
	for _, need := range m.needs {
		value, err := find(values[need[0]], need[1:])
		if err != nil {
			return nil, fmt.Errorf("reading the variable %s: %w", need[0], err)
		}
		needed = append(needed, value)
	}
	return json.Marshal([]any{names, needed})
}

// find returns the value at a path, or nil.
func find(raw json.RawMessage, names []string) (json.RawMessage, error) {
	if len(names) == 0 || raw == nil {
		return raw, nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, errors.New("not an object") // the value may be secret
	}
	return find(object[names[0]], names[1:])
}

func readVariables(variables []byte) (map[string]json.RawMessage, error) {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(variables, &values); err != nil {
		return nil, errors.New("the variables are not a JSON object")
	}
	return values, nil
}

// Files returns the files that replace the module's own when it is called, by name. The others are
// links. The caller must not change the files.
func (m *Module) Files() map[string][]byte { return m.called }

// Folder is where the module is called from, relative to the root module.
const Folder = "machine"
