package module

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	yamlnode "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation"
	strictjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
)

// metadataFile describes the module to the operator.
const metadataFile = "module.yaml"

var (
	yamlLine     = regexp.MustCompile(`\bline (\d+): `)
	strictField  = regexp.MustCompile(`field "([^"]+)"`)
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	// reservedName matches environment variables that steer the engine or the process itself. They are the operator's.
	reservedName = regexp.MustCompile(`^(TF_.*|TOFU_.*|LD_.*|PATH|HOME|TMPDIR|SHELL|IFS)$`)
)

// metadata is module.yaml while it is checked.
type metadata struct {
	*report
	lines  *yamlnode.Node
	absent []*regexp.Regexp
	v1alpha1.Module
}

// readMetadata parses module.yaml strictly, fills in defaults and checks what can be checked without the HCL.
func readMetadata(files snapshot, found *report) *metadata {
	content, exists := files[metadataFile]
	if !exists {
		found.add(Breach{File: metadataFile, Problem: "is missing", Mend: "write one; docs/contracts/module.md lists its fields"})
		return nil
	}
	parsed := &metadata{report: found, lines: &yamlnode.Node{}}
	if !parsed.decode(content) {
		return nil
	}
	setDefaults(&parsed.Spec)
	parsed.checkIdentity()
	parsed.checkProviderSpecs()
	parsed.checkCredentials()
	parsed.checkEnvironment()
	parsed.checkLookup()
	parsed.checkCapacity()
	return parsed
}

func (m *metadata) decode(content []byte) bool {
	raw, err := yaml.YAMLToJSONStrict(content)
	if err == nil {
		err = yamlnode.Unmarshal(content, m.lines)
	}
	if err != nil {
		line := 0
		if match := yamlLine.FindStringSubmatch(err.Error()); match != nil {
			line, _ = strconv.Atoi(match[1])
		}
		m.add(Breach{File: metadataFile, Line: line, Problem: "is not valid YAML: " + oneLine(err.Error())})
		return false
	}
	strictErrs, err := strictjson.UnmarshalStrict(raw, &m.Module)
	if err != nil {
		m.add(Breach{File: metadataFile, Problem: "does not fit the type Module of machine-iac.io/v1alpha1: " + oneLine(err.Error())})
		return false
	}
	for _, strictErr := range strictErrs {
		var path string
		if match := strictField.FindStringSubmatch(strictErr.Error()); match != nil {
			path = match[1]
		}
		m.breach(path, "is refused: "+strictErr.Error(), "remove it, or correct its spelling")
	}
	return true
}

func setDefaults(spec *v1alpha1.ModuleSpec) {
	if spec.Credentials != nil && spec.Credentials.Path == "" {
		spec.Credentials.Path = v1alpha1.DefaultCredentialsPath
	}
	if spec.UserData != nil && spec.UserData.Path == "" {
		spec.UserData.Path = v1alpha1.DefaultUserDataPath
	}
	if spec.UserData != nil && spec.UserData.Key == "" {
		spec.UserData.Key = v1alpha1.DefaultUserDataKey
	}
	if spec.Capacity == nil {
		return
	}
	if spec.Capacity.Path == "" {
		spec.Capacity.Path = v1alpha1.DefaultInstanceTypePath
	}
	for i := range spec.Capacity.InstanceTypes {
		if spec.Capacity.InstanceTypes[i].Architecture == "" {
			spec.Capacity.InstanceTypes[i].Architecture = "amd64"
		}
	}
}

func (m *metadata) checkIdentity() {
	if m.APIVersion != v1alpha1.GroupVersion.String() {
		m.breach("apiVersion", fmt.Sprintf("is %q", m.APIVersion), "write "+v1alpha1.GroupVersion.String())
	}
	if m.Kind != v1alpha1.ModuleKind {
		m.breach("kind", fmt.Sprintf("is %q", m.Kind), "write "+v1alpha1.ModuleKind)
	}
	if len(validation.IsDNS1123Label(m.Metadata.Name)) > 0 {
		m.breach("metadata.name", fmt.Sprintf("is %q, which is not a DNS label", m.Metadata.Name),
			"use lower-case letters, digits and dashes, 63 at most")
	}
}

func (m *metadata) checkProviderSpecs() {
	if len(m.Spec.ProviderSpecs) == 0 {
		m.breach("spec.providerSpecs", "is empty", "name at least one apiVersion and kind that the module serves")
	}
	seen := map[string]bool{}
	for i, served := range m.Spec.ProviderSpecs {
		path := fmt.Sprintf("spec.providerSpecs[%d]", i)
		if served.Kind == "" {
			m.breach(path+".kind", "is empty", "name the providerSpec kind")
		}
		if len(served.APIVersions) == 0 {
			m.breach(path+".apiVersions", "is empty", "name at least one version")
		}
		for j, apiVersion := range served.APIVersions {
			at := fmt.Sprintf("%s.apiVersions[%d]", path, j)
			if group, version, ok := strings.Cut(apiVersion, "/"); !ok || group == "" || version == "" || strings.Contains(version, "/") {
				m.breach(at, fmt.Sprintf("is %q", apiVersion), "write it as group/version")
			}
			if key := apiVersion + " " + served.Kind; seen[key] {
				m.breach(at, fmt.Sprintf("names %s %s a second time", apiVersion, served.Kind), "keep one")
			} else {
				seen[key] = true
			}
		}
	}
}

func (m *metadata) checkCredentials() {
	if m.Spec.Credentials == nil {
		return
	}
	if len(m.Spec.Credentials.Keys) == 0 {
		m.breach("spec.credentials.keys", "is empty", "list the Secret's keys, or leave out spec.credentials")
	}
	for i, key := range m.Spec.Credentials.Keys {
		path := fmt.Sprintf("spec.credentials.keys[%d]", i)
		if len(validation.IsConfigMapKey(key.Key)) > 0 {
			m.breach(path+".key", fmt.Sprintf("is %q, which cannot be a key of a Secret", key.Key),
				"use letters, digits, '-', '_' and '.'")
		}
		m.checkVariableName(path+".env", key.Env)
	}
}

func (m *metadata) checkEnvironment() {
	owner := map[string]string{}
	claim := func(path, name string) {
		if first, taken := owner[name]; taken && name != "" {
			m.breach(path, fmt.Sprintf("sets %s, which %s sets too", name, first), "keep one")
			return
		}
		owner[name] = path
	}
	if m.Spec.Credentials != nil {
		for i, key := range m.Spec.Credentials.Keys {
			claim(fmt.Sprintf("spec.credentials.keys[%d].env", i), key.Env)
		}
	}
	for i, variable := range m.Spec.Environment {
		path := fmt.Sprintf("spec.environment[%d].name", i)
		m.checkVariableName(path, variable.Name)
		claim(path, variable.Name)
	}
}

func (m *metadata) checkVariableName(path, name string) {
	switch {
	case !variableName.MatchString(name):
		m.breach(path, fmt.Sprintf("is %q, which cannot name an environment variable", name), "use letters, digits and '_'")
	case reservedName.MatchString(name):
		m.breach(path, fmt.Sprintf("is %s, which steers the engine and is the operator's to set", name),
			"use a variable that the provider reads")
	}
}

func (m *metadata) checkLookup() {
	if m.Spec.Lookup == nil {
		return
	}
	for i, pattern := range m.Spec.Lookup.Absent {
		path := fmt.Sprintf("spec.lookup.absent[%d]", i)
		compiled, err := regexp.Compile(pattern)
		switch {
		case err != nil:
			m.breach(path, "is not a regular expression: "+oneLine(err.Error()), "write it in RE2 syntax")
		case compiled.MatchString(""):
			m.breach(path, "matches every text, so every error would mean that there is no instance",
				"match the words with which the provider says that the object does not exist")
		default:
			m.absent = append(m.absent, compiled)
		}
	}
}

func (m *metadata) checkCapacity() {
	if m.Spec.Capacity == nil {
		return
	}
	seen := map[string]bool{}
	for i, entry := range m.Spec.Capacity.InstanceTypes {
		path := fmt.Sprintf("spec.capacity.instanceTypes[%d]", i)
		if entry.Name == "" || seen[entry.Name] {
			m.breach(path+".name", fmt.Sprintf("is %q, which is empty or taken", entry.Name), "name each instance type once")
		}
		seen[entry.Name] = true
		if entry.CPU.Sign() <= 0 {
			m.breach(path+".cpu", "is not positive", `write the number of processors, for example "4"`)
		}
		if entry.Memory.Sign() <= 0 {
			m.breach(path+".memory", "is not positive", `write the memory, for example "16Gi"`)
		}
		if entry.GPU < 0 {
			m.breach(path+".gpu", "is negative", "write the number of graphics processors, or leave it out")
		}
	}
}

// breach adds a breach at a field of module.yaml, or at the nearest parent that is there.
func (m *metadata) breach(path, problem, mend string) {
	m.add(Breach{File: metadataFile, Line: m.line(path), What: path, Problem: problem, Mend: mend})
}

func (m *metadata) line(path string) int {
	node := m.lines
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

// childOf answers a child and the line where it is named.
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
