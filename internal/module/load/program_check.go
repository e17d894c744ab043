package load

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	yamlnode "go.yaml.in/yaml/v3"

	"github.com/machine-iac/machine-iac-operator/internal/engine/repeat"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/contract"
)

// programCheck checks the program of a stack and its searches.
type programCheck struct {
	files    module.Files
	metadata *contract.Metadata
	module   module.Definition
	found    *contract.Report
}

func (c programCheck) check() {
	// Read errors have been reported already.
	own := readProgram(c.files, projectFile, &contract.Report{})
	if own != nil {
		c.project(own)
		c.instance(own)
		c.outputs(own)
	}
	programs := []*program{own}
	allReadable := own != nil
	for _, one := range searches {
		found, readable := c.search(one, own)
		programs, allReadable = append(programs, found), allReadable && readable
	}
	c.noInventory()
	c.metadata.CheckCreates(own.types(), c.module.Instances...)
	c.metadata.CheckDisruptive(own.types())
	if allReadable {
		c.packages(programs...)
	}
}

// CodeIn reports programs in languages other than YAML as breaches: they are code, which the rules
// cannot check. Use it for content that nobody is known to have chosen.
func stackCode(files module.Files, found *contract.Report) {
	for _, name := range files.Names(func(name string) bool { return path.Base(name) == projectFile }) {
		if p := readProgram(files, name, &contract.Report{}); p != nil && !p.isYAML() {
			p.unsafe(found, lineOf(p.field("runtime")), "runtime",
				fmt.Sprintf("is %q, so the program is code, which does not run from a place where others can write", p.runtime),
				"load the stack into the manager with --module-dir or --module-source, or sign what is stored with --module-key-file")
		}
	}
}

// The allowed fields of a project, depending on whether its program is YAML. With any others,
// Pulumi would read or do something that the rules do not check.
var (
	commonFields = []string{"name", "description", "runtime", "author", "website", "license",
		"requiredPulumiVersion", "config"}
	yamlFields = append(slices.Clone(commonFields), "variables", "resources", "outputs")
	codeFields = append(slices.Clone(commonFields), "main")
)

// refusedFields are reasons for rejecting some fields of a project.
var refusedFields = map[string][2]string{
	"backend":        {"sets where the checkpoint is stored", "remove it: the operator stores the checkpoint"},
	"stackConfigDir": {"sets where a stack's settings are", "remove it: the operator writes them"},
	"plugins":        {"names plugins by paths", "remove it: plugins come from the manager's folder of plugins"},
	"packages": {"names packages that nothing pins", "remove it, and pin them in " + packagesFolder +
		"/ with 'pulumi package add'"},
	"components":    {"declares components", "move their resources to the top level"},
	"options":       {"changes what every run does", "remove it"},
	"configuration": {"is an old name", "write config"},
}

// project checks what applies to programs and searches.
func (c programCheck) project(p *program) {
	if name := p.field("name"); c.metadata != nil && name.text() != c.metadata.Metadata.Name {
		p.add(c.found, lineOf(name), "name", fmt.Sprintf("is %q", name.text()),
			fmt.Sprintf("write %s, the stack's name in %s: resources are named after it", c.metadata.Metadata.Name,
				module.MetadataFile))
	}
	allowed := codeFields
	switch {
	case p.isYAML():
		allowed = yamlFields
	case p.runtime == "":
		p.unsafe(c.found, lineOf(p.field("runtime")), "runtime", "names no runtime",
			"write runtime: yaml, or the language of the program")
		return
	}
	for _, one := range p.fields {
		if slices.Contains(allowed, one.name) {
			continue
		}
		reason, known := refusedFields[one.name]
		if !known {
			reason = [2]string{"is not a field that a stack's project may have",
				"remove it, or correct the spelling; allowed are " + strings.Join(allowed, ", ")}
		}
		p.unsafe(c.found, one.line, one.name, reason[0], reason[1])
	}
	if p.isYAML() && p.runtimeOptions {
		p.unsafe(c.found, lineOf(p.field("runtime")),
			"runtime", "has options, which could start a program that writes the program", "write runtime: yaml")
	}
	if main := p.field("main").text(); main != "" && !isInside(main) {
		p.unsafe(c.found, p.field("main").line, "main", fmt.Sprintf("is %q, which is outside of the stack", main),
			"use a folder of the stack")
	}
	c.config(p)
	c.functions(p)
	if p.isYAML() {
		c.statements(p)
	}
}

// statements checks what a YAML program creates, calls and repeats.
func (c programCheck) statements(p *program) {
	for _, one := range p.resources {
		c.resource(p, one)
	}
	for _, one := range p.calls {
		if does := programPackage(packageOf(one.text)); does != "" {
			p.unsafe(c.found, one.line, one.text, does, "use a provider's function")
		}
	}
	for _, one := range repeat.Faults(&p.document) {
		problem, fix, _ := strings.Cut(one.Problem, "; ")
		p.add(c.found, one.Line, one.What, problem, fix)
	}
}

// configTypes are the types of a program's configuration.
var configTypes = map[string]string{
	module.VariableMachine: "object", module.VariableProviderSpec: "object", module.VariableUserData: "string",
	module.ConfigLocals:  "object",
	module.VariableAdopt: "object", module.VariableCluster: "object",
}

func (c programCheck) config(p *program) {
	var declared []yamlField
	if config := p.field("config"); config != nil {
		declared = fieldsOf(config.value)
	}
	for _, one := range declared {
		c.configured(p, one)
	}
	if !p.isYAML() {
		return
	}
	wanted := slices.Sorted(maps.Keys(configTypes))
	for _, name := range wanted {
		switch {
		case fieldOf(declared, name) != nil, name == module.ConfigLocals && len(c.module.Locals) == 0:
		case name == module.VariableAdopt && !p.adopts(), name == module.VariableCluster:
		case p.isSearch() && name != module.VariableAdopt:
		case name == module.ConfigLocals:
			p.add(c.found, 0, "config.locals", "is missing, so nothing uses locals.tf",
				"add locals: {type: object}, or remove locals.tf")
		case name == module.VariableUserData:
			p.add(c.found, 0, "config."+name, "is missing", "add "+name+": {type: string, secret: true}")
		default:
			p.add(c.found, 0, "config."+name, "is missing", "add "+name+": {type: object}")
		}
	}
}

// misplaced returns why a program does not get a configuration value, and the fix, or "".
func (c programCheck) misplaced(p *program, name string) (problem, remedy string) {
	switch {
	case name == module.ConfigLocals && len(c.module.Locals) == 0:
		return "exists, but locals.tf declares none", "remove it, or write locals.tf"
	case name == module.VariableCluster && c.module.Variables[name].Name == "":
		return "exists, but variables.tf declares no such variable", "remove it, or declare it"
	case name == module.VariableUserData && p.isSearch():
		return "is not passed to a search", "remove it: it has nothing to boot"
	case name == module.VariableAdopt && !p.adopts():
		return "is passed to " + contract.AdoptFolder + "/" + projectFile + " only", "remove it"
	}
	return "", ""
}

// configured checks one configuration value of a program.
func (c programCheck) configured(p *program, one yamlField) {
	what := "config." + one.name
	wanted, known := configTypes[one.name]
	fields := fieldsOf(one.value)
	if !known {
		p.add(c.found, one.line, what, "is not passed to a program",
			"remove it; available are machine, provider_spec, user_data, cluster if variables.tf declares it, and locals if there is locals.tf")
		return
	}
	if problem, remedy := c.misplaced(p, one.name); problem != "" {
		p.add(c.found, one.line, what, problem, remedy)
	}
	if declared := fieldOf(fields, "type").text(); declared != wanted {
		p.add(c.found, one.line, what, fmt.Sprintf("has the type %q", declared), "write type: "+wanted)
	}
	secret := fieldOf(fields, "secret").text() == "true"
	if one.name == module.VariableUserData && !secret {
		p.add(c.found, one.line, what, "is not secret", "add secret: true, so that it is always stored encrypted")
	}
	for _, field := range fields {
		if field.name != "type" && field.name != "secret" && field.name != "description" {
			p.add(c.found, field.line, what+"."+field.name, "sets a value that only the operator sets",
				"remove it; defaults belong in the type in variables.tf")
		}
	}
}

// remoteFunctions access unpinned content, and fileFunctions access files.
var (
	remoteFunctions = []string{"fn::remoteasset", "fn::remotearchive", "fn::stackreference"}
	fileFunctions   = []string{"fn::readfile", "fn::filebase64", "fn::filebase64sha256", "fn::fileasset",
		"fn::filearchive"}
)

// mergeKey merges the fields of other objects in YAML.
const mergeKey = "<<"

// functions checks the calls of a YAML program.
func (c programCheck) functions(p *program) {
	for _, one := range p.fields {
		walkFields(one.value, func(f yamlField) {
			name := strings.ToLower(f.name)
			switch {
			case name == "fn::unsecret":
				p.add(c.found, f.line, f.name, "would reveal a secret in the checkpoint", "remove it")
			case name == mergeKey:
				p.unsafe(c.found, f.line, f.name, "merges objects, which YAML parsers interpret differently", "write it out")
			case slices.Contains(remoteFunctions, name):
				p.unsafe(c.found, f.line, f.name, "reads something outside of the stack",
					"put it into the stack's folder, or use a provider's function")
			case slices.Contains(fileFunctions, name):
				c.fileFunction(p, f)
			}
		})
		if at := alias(one.value); at > 0 {
			p.unsafe(c.found, at, "", "contains an alias, which YAML parsers interpret differently", "write it out")
		}
	}
}

// fileFunction checks that a file function reads a file of the stack.
func (c programCheck) fileFunction(p *program, f yamlField) {
	const fix = "use a literal path of a file in the stack's folder"
	named := path.Clean(f.text())
	switch {
	case f.text() == "" || strings.Contains(f.text(), "${") || !isInside(f.text()):
		p.unsafe(c.found, f.line, f.name, "reads "+f.kind()+", which may be any file of the manager", fix)
	case !contract.InfluencesRun(named) || !c.holds(named):
		p.unsafe(c.found, f.line, f.name, "reads "+f.kind()+", which is not a file of the stack that a run has", fix)
	}
}

// holds reports whether the stack has a file or folder of a name. The whole folder does not count:
// in a run it contains more than the stack.
func (c programCheck) holds(name string) bool {
	if _, exists := c.files[name]; exists {
		return true
	}
	return len(c.files.Names(func(file string) bool { return strings.HasPrefix(file, name+"/") })) > 0
}

// alias returns the line of the first alias below a node, or 0.
func alias(node *yamlnode.Node) int {
	if node.Kind == yamlnode.AliasNode {
		return node.Line
	}
	for _, inner := range node.Content {
		if at := alias(inner); at > 0 {
			return at
		}
	}
	return 0
}

// isInside reports whether a path stays inside the folder.
func isInside(name string) bool {
	clean := path.Clean(name)
	return !path.IsAbs(name) && clean != ".." && !strings.HasPrefix(clean, "../")
}

func lineOf(field *yamlField) int {
	if field == nil {
		return 0
	}
	return field.line
}

// instance checks that exactly one created resource is the instance.
func (c programCheck) instance(p *program) {
	if !p.isYAML() {
		return
	}
	at := slices.IndexFunc(p.resources, func(one programResource) bool { return one.name == instanceName })
	switch {
	case at < 0:
		p.add(c.found, lineOf(p.field("resources")), "", `has no resource called "this"`,
			"give that name to the resource that is the instance")
	case strings.HasPrefix(p.resources[at].typ, "pulumi:"):
		p.add(c.found, p.resources[at].line, "resources.this", "is a provider, not an instance",
			"give that name to the resource that is the instance")
	case fieldOf(p.resources[at].fields, "get") != nil:
		p.add(c.found, p.resources[at].line, "resources.this", "is only read",
			"remove get: this resource is what creating a Machine creates")
	}
}

// outputs checks that everything exists that the operator publishes.
func (c programCheck) outputs(p *program) {
	if !p.isYAML() {
		return
	}
	outputs := p.field("outputs")
	var declared []yamlField
	if outputs != nil {
		declared = fieldsOf(outputs.value)
	}
	for _, name := range contract.RequiredOutputs {
		if fieldOf(declared, name) == nil {
			p.add(c.found, lineOf(outputs), "outputs."+name, "is missing", "declare it")
		}
	}
	c.metadata.CheckProviderStatus(func(name string) bool { return fieldOf(declared, name) != nil })
	if what, fix := contract.WithoutPair(c.module.Variables,
		fieldOf(declared, module.VariableRecorded) != nil); what != "" {
		p.add(c.found, lineOf(outputs), what, "is missing", fix)
	}
	for _, one := range declared {
		for _, inner := range fieldsOf(one.value) {
			if strings.EqualFold(inner.name, "fn::secret") {
				p.add(c.found, inner.line, "outputs."+one.name, "is a secret, but it is published on the Machine",
					"remove fn::secret")
			}
		}
	}
}
