package contract

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/snapshot"
)

const (
	// defaultUserDataKey is the default of spec.userData.key.
	defaultUserDataKey = "userData"
	// defaultInstanceTypePath is the default of spec.capacity.path.
	defaultInstanceTypePath = "instanceType"
	// maxSettleSeconds is the most that spec.lookup.settleSeconds may be.
	maxSettleSeconds = 3600
)

// The kinds of the files of a module.
const (
	moduleKind        = "Module"
	instanceTypesKind = "InstanceTypes"
)

var (
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	// reservedName matches environment variables that steer the engine or the process itself. They are the operator's.
	reservedName = regexp.MustCompile(`^(TF_.*|TOFU_.*|PULUMI_.*|LD_.*|PATH|HOME|TMPDIR|SHELL|IFS)$`)
)

// kindsForAny are the kinds through which the modules of an engine are served, whatever kinds they have of their own.
var kindsForAny = []string{module.KindForAny(v1alpha1.EngineTerraform), module.KindForAny(v1alpha1.EnginePulumi)}

// Metadata is module.yaml while it is checked.
type Metadata struct {
	Document
	// Absent, AdoptAbsent and Final are the patterns of spec.lookup.absent, spec.adopt.absent and spec.errors.final.
	Absent, AdoptAbsent, Final []*regexp.Regexp
	// InstanceTypes is the catalogue of spec.capacity by name.
	InstanceTypes map[string]v1alpha1.InstanceTypeCapacity
	v1alpha1.Module
}

// ReadMetadata parses module.yaml strictly, fills in defaults and checks what can be checked without the HCL.
func ReadMetadata(files snapshot.Files, found *Report) *Metadata {
	content, exists := files[module.MetadataFile]
	if !exists {
		found.Add(Breach{File: module.MetadataFile, Problem: "is missing", Fix: "write one; docs/contracts/module.md lists its fields"})
		return nil
	}
	parsed := &Metadata{Document: Document{Report: found, File: module.MetadataFile, Kind: moduleKind}}
	if !parsed.Decode(content, &parsed.Module) {
		return nil
	}
	setDefaults(&parsed.Spec)
	parsed.checkIdentity()
	parsed.checkEngine()
	parsed.checkProviderSpecs()
	parsed.checkCredentials()
	parsed.checkRights()
	parsed.checkEnvironment()
	parsed.checkLookup()
	parsed.checkAdopt()
	parsed.checkErrors()
	parsed.InstanceTypes = readCatalogue(parsed, files)
	return parsed
}

func setDefaults(spec *v1alpha1.ModuleSpec) {
	if spec.Engine == "" {
		spec.Engine = v1alpha1.EngineTerraform
	}
	if spec.Credentials != nil && spec.Credentials.Path == "" {
		spec.Credentials.Path = module.DefaultCredentialsPath
	}
	if spec.UserData != nil && spec.UserData.Path == "" {
		spec.UserData.Path = module.DefaultUserDataPath
	}
	if spec.UserData != nil && spec.UserData.Key == "" {
		spec.UserData.Key = defaultUserDataKey
	}
	if spec.Capacity != nil && spec.Capacity.Path == "" {
		spec.Capacity.Path = defaultInstanceTypePath
	}
}

func (m *Metadata) checkIdentity() {
	m.checkKind(m.TypeMeta)
	if len(validation.IsDNS1123Label(m.Metadata.Name)) > 0 {
		m.AtField("metadata.name", fmt.Sprintf("is %q, which is not a DNS label", m.Metadata.Name),
			"use lower-case letters, digits and dashes, 63 at most")
	}
}

func (m *Metadata) checkEngine() {
	if m.Spec.Engine != v1alpha1.EngineTerraform && m.Spec.Engine != v1alpha1.EnginePulumi {
		m.AtField("spec.engine", fmt.Sprintf("is %q, which is no engine", m.Spec.Engine), "write Terraform or Pulumi; left out, it is Terraform")
	}
}

func (m *Metadata) checkProviderSpecs() {
	if m.Spec.Platform != "" && len(m.Spec.ProviderSpecs) == 0 {
		m.AtField("spec.platform", "is set, but there is no kind", "list the kind in spec.providerSpecs, or remove spec.platform")
	}
	seen := map[string]bool{}
	for i, served := range m.Spec.ProviderSpecs {
		path := fmt.Sprintf("spec.providerSpecs[%d]", i)
		if served.Kind == "" {
			m.AtField(path+".kind", "is empty", "name the providerSpec kind")
		}
		if served.FieldNames != "" && served.FieldNames != v1alpha1.FieldNamesExact && served.FieldNames != v1alpha1.FieldNamesCaseInsensitive {
			m.AtField(path+".fieldNames", fmt.Sprintf("is %q", served.FieldNames), "write Exact or CaseInsensitive; left out, it is Exact")
		}
		if len(served.APIVersions) == 0 {
			m.AtField(path+".apiVersions", "is empty", "name at least one version")
		}
		for j, apiVersion := range served.APIVersions {
			m.checkAPIVersion(fmt.Sprintf("%s.apiVersions[%d]", path, j), apiVersion, served.Kind)
			if key := apiVersion + " " + served.Kind; seen[key] {
				m.AtField(fmt.Sprintf("%s.apiVersions[%d]", path, j), fmt.Sprintf("names %s %s a second time", apiVersion, served.Kind), "keep one")
			} else {
				seen[key] = true
			}
		}
	}
}

// checkAPIVersion checks one version of a kind.
func (m *Metadata) checkAPIVersion(at, apiVersion, kind string) {
	if group, version, ok := strings.Cut(apiVersion, "/"); !ok || group == "" || version == "" || strings.Contains(version, "/") {
		m.AtField(at, fmt.Sprintf("is %q", apiVersion), "write it as group/version")
	}
	if apiVersion == v1alpha1.GroupVersion.String() && slices.Contains(kindsForAny, kind) {
		m.AtField(at, "names a kind through which every module of an engine is served", "remove it, or name a kind of the module's own")
	}
}

func (m *Metadata) checkCredentials() {
	if m.Spec.Credentials == nil {
		return
	}
	if len(m.Spec.Credentials.Keys) == 0 {
		m.AtField("spec.credentials.keys", "is empty", "list the Secret's keys, or leave out spec.credentials")
	}
	for i, key := range m.Spec.Credentials.Keys {
		path := fmt.Sprintf("spec.credentials.keys[%d]", i)
		m.checkKey(path+".key", key.Key)
		m.checkVariable(path, key)
		m.checkUnless(path+".unless", i)
		m.checkMatches(path, key)
		if slices.Contains(key.Path, "") {
			m.AtField(path+".path", "has an empty step", "write the names and positions that lead to the value")
		}
	}
}

// checkVariable checks what becomes of a key of the credentials Secret.
func (m *Metadata) checkVariable(path string, key v1alpha1.CredentialKey) {
	switch {
	case key.File == "":
		m.checkVariableName(path+".env", key.Env)
	case key.Env != "":
		m.AtField(path+".file", fmt.Sprintf("is %s, but env is %s", key.File, key.Env), "keep one: a provider reads either the value or a file")
	default:
		m.checkVariableName(path+".file", key.File)
	}
}

func (m *Metadata) checkEnvironment() {
	owner, optional := map[string]string{}, map[string]bool{}
	claim := func(path, name string, instead bool) {
		if first, taken := owner[name]; taken && name != "" && (!instead || !optional[name]) {
			m.AtField(path, fmt.Sprintf("sets %s, which %s sets too", name, first), "keep one")
			return
		}
		owner[name] = path
	}
	if m.Spec.Credentials != nil {
		for i, key := range m.Spec.Credentials.Keys {
			claim(fmt.Sprintf("spec.credentials.keys[%d].env", i), key.Env, false)
			claim(fmt.Sprintf("spec.credentials.keys[%d].file", i), key.File, false)
			optional[key.Env] = key.Optional
		}
	}
	for i, variable := range m.Spec.Environment {
		path := fmt.Sprintf("spec.environment[%d].name", i)
		m.checkVariableName(path, variable.Name)
		// What the Secret may lack, the cluster may say.
		claim(path, variable.Name, variable.From != "")
		m.checkSource(fmt.Sprintf("spec.environment[%d].from", i), variable)
	}
}

func (m *Metadata) checkVariableName(path, name string) {
	switch {
	case !variableName.MatchString(name):
		m.AtField(path, fmt.Sprintf("is %q, which cannot name an environment variable", name), "use letters, digits and '_'")
	case reservedName.MatchString(name):
		m.UnsafeField(path, fmt.Sprintf("is %s, which steers the engine and is the operator's to set", name),
			"use a variable that the provider reads")
	}
}

func (m *Metadata) checkLookup() {
	lookup := m.Spec.Lookup
	if lookup == nil {
		return
	}
	m.Absent = m.patterns("spec.lookup.absent", lookup.Absent, "so every error would mean that there is no instance",
		"match the words with which the provider says that the object does not exist")
	if seconds := lookup.SettleSeconds; seconds != nil && (*seconds < 0 || *seconds > maxSettleSeconds) {
		m.AtField("spec.lookup.settleSeconds", fmt.Sprintf("is %d", *seconds), fmt.Sprintf("write 0 to %d, or leave it out", maxSettleSeconds))
	}
}

func (m *Metadata) checkAdopt() {
	adopt := m.Spec.Adopt
	if adopt == nil {
		return
	}
	m.AdoptAbsent = m.patterns("spec.adopt.absent", adopt.Absent, "so every error would mean that there is no instance",
		"match the words with which the provider says that the object does not exist")
}

// CheckCreates checks spec.adopt.creates, by the types of the resources that the module makes, nil where they are not known, and the address
// of its instance. m may be nil.
func (m *Metadata) CheckCreates(types map[string]bool, instances ...string) {
	if m == nil || m.Spec.Adopt == nil {
		return
	}
	seen := map[string]bool{}
	for i, name := range m.Spec.Adopt.Creates {
		at := fmt.Sprintf("spec.adopt.creates[%d]", i)
		switch {
		case seen[name]:
			m.AtField(at, fmt.Sprintf("names %s a second time", name), "keep one")
		case name == builtInType:
			m.AtField(at, "names "+name+", which is in the state only", "remove it: an adoption may create it anyhow")
		case slices.ContainsFunc(instances, func(address string) bool { return strings.TrimSuffix(address, "[0]") == name+"."+instanceName }):
			m.AtField(at, "names "+name+", the type of the instance, which is imported or not adopted", "remove it")
		case types != nil && !types[name]:
			m.AtField(at, fmt.Sprintf("is %q, the type of no resource of the module", name), "name the type of a resource that cannot be imported")
		}
		seen[name] = true
	}
}

func (m *Metadata) checkErrors() {
	if m.Spec.Errors == nil {
		return
	}
	m.Final = m.patterns("spec.errors.final", m.Spec.Errors.Final, "so every error would end the Machine",
		"match the words with which the infrastructure refuses what it will never take")
}

// patterns compiles regular expressions over errors of the engine, and reports those that can't be meant: one that matches no text at all
// matches any.
func (m *Metadata) patterns(path string, patterns []string, consequence, fix string) []*regexp.Regexp {
	var usable []*regexp.Regexp
	for i, pattern := range patterns {
		at := fmt.Sprintf("%s[%d]", path, i)
		compiled, err := regexp.Compile(pattern)
		switch {
		case err != nil:
			m.AtField(at, "is not a regular expression: "+OneLine(err.Error()), "write it in RE2 syntax")
		case compiled.MatchString(""):
			m.AtField(at, "matches every text, "+consequence, fix)
		default:
			usable = append(usable, compiled)
		}
	}
	return usable
}
