package contract

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module"
)

const (
	// defaultUserDataKey is the default of spec.userData.key.
	defaultUserDataKey = "userData"
	// defaultInstanceTypePath is the default of spec.capacity.path.
	defaultInstanceTypePath = "instanceType"
	// maxSettleSeconds is the maximum of spec.lookup.settleSeconds.
	maxSettleSeconds = 3600
)

// The kinds of a module's files.
const (
	moduleKind        = "Module"
	instanceTypesKind = "InstanceTypes"
)

var (
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	// reservedName matches environment variables that control the engine or the process itself. They
	// are reserved for the operator.
	reservedName = regexp.MustCompile(`^(TF_.*|TOFU_.*|PULUMI_.*|LD_.*|PATH|HOME|TMPDIR|SHELL|IFS)$`)
)

// Metadata is module.yaml while it is checked.
type Metadata struct {
	Document
	// Absent, AdoptAbsent, Final and NothingMade are the patterns of spec.lookup.absent,
	// spec.adopt.absent, spec.errors.final and spec.errors.nothingMade.
	Absent, AdoptAbsent, Final, NothingMade []*regexp.Regexp
	// Hints from spec.errors.hints.
	Hints []module.Hint
	// Identities from spec.identity, by type.
	Identities module.Identities
	// InstanceTypes is the catalog of spec.capacity, by name.
	InstanceTypes map[string]v1alpha1.InstanceTypeCapacity
	v1alpha1.Module
}

// ReadMetadata parses module.yaml strictly, applies defaults, and checks everything that does not
// depend on the HCL.
func ReadMetadata(files module.Files, found *Report) *Metadata {
	content, exists := files[module.MetadataFile]
	if !exists {
		found.Add(Breach{File: module.MetadataFile, Problem: "is missing",
			Fix: "create it; docs/contracts/module.md lists its fields"})
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
	parsed.readIdentities()
	parsed.checkLookup()
	parsed.checkAdopt()
	parsed.checkErrors()
	parsed.InstanceTypes = readCatalogue(parsed, files)
	return parsed
}

func setDefaults(spec *v1alpha1.ModuleSpec) {
	if spec.Engine == "" {
		spec.Engine = module.Engines()[0].Engine
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
			"use lower-case letters, digits and dashes, at most 63")
	}
}

func (m *Metadata) checkEngine() {
	var known []string
	for _, one := range module.Engines() {
		if one.Engine == m.Spec.Engine {
			return
		}
		known = append(known, string(one.Engine))
	}
	m.AtField("spec.engine", fmt.Sprintf("is %q, which is not an engine", m.Spec.Engine),
		"write "+strings.Join(known, " or ")+"; the default is "+known[0])
}

func (m *Metadata) checkProviderSpecs() {
	if m.Spec.Platform != "" && len(m.Spec.ProviderSpecs) == 0 {
		m.AtField("spec.platform", "is set, but there is no kind",
			"list the kind in spec.providerSpecs, or remove spec.platform")
	}
	seen := map[string]bool{}
	for i, served := range m.Spec.ProviderSpecs {
		path := fmt.Sprintf("spec.providerSpecs[%d]", i)
		if served.Kind == "" {
			m.AtField(path+".kind", "is empty", "name the providerSpec kind")
		}
		if served.FieldNames != "" && served.FieldNames != v1alpha1.FieldNamesExact &&
			served.FieldNames != v1alpha1.FieldNamesCaseInsensitive {
			m.AtField(path+".fieldNames", fmt.Sprintf("is %q", served.FieldNames),
				"write Exact or CaseInsensitive; the default is Exact")
		}
		for j, alias := range served.Aliases {
			isKind := func(one v1alpha1.ProviderSpecKind) bool { return one.Kind == alias }
			if alias == "" || slices.ContainsFunc(m.Spec.ProviderSpecs, isKind) {
				m.AtField(fmt.Sprintf("%s.aliases[%d]", path, j),
					fmt.Sprintf("is %q: an alias must not be empty or a kind of the module", alias), "remove it")
			}
		}
		if len(served.APIVersions) == 0 {
			m.AtField(path+".apiVersions", "is empty", "name at least one version")
		}
		for j, apiVersion := range served.APIVersions {
			m.checkAPIVersion(fmt.Sprintf("%s.apiVersions[%d]", path, j), apiVersion, served.Kind)
			if key := apiVersion + " " + served.Kind; seen[key] {
				m.AtField(fmt.Sprintf("%s.apiVersions[%d]", path, j), fmt.Sprintf("names %s %s twice", apiVersion, served.Kind),
					"keep one")
			} else {
				seen[key] = true
			}
		}
	}
}

// checkAPIVersion checks one version of a kind.
func (m *Metadata) checkAPIVersion(at, apiVersion, kind string) {
	if group, version, ok := strings.Cut(apiVersion, "/"); !ok || group == "" || version == "" ||
		strings.Contains(version, "/") {
		m.AtField(at, fmt.Sprintf("is %q", apiVersion), "write it as group/version")
	}
	if apiVersion == v1alpha1.GroupVersion.String() && slices.ContainsFunc(module.Engines(), func(one module.Traits) bool { return one.KindForAny == kind }) {
		m.AtField(at, "is a kind that serves every module of an engine", "remove it, or use a kind of the module's own")
	}
}

func (m *Metadata) checkCredentials() {
	if m.Spec.Credentials == nil {
		return
	}
	if len(m.Spec.Credentials.Keys) == 0 {
		m.AtField("spec.credentials.keys", "is empty", "list the Secret's keys, or remove spec.credentials")
	}
	for i, key := range m.Spec.Credentials.Keys {
		path := fmt.Sprintf("spec.credentials.keys[%d]", i)
		m.checkKey(path+".key", key.Key)
		m.checkVariable(path, key)
		m.checkUnless(path+".unless", i)
		m.checkMatches(path, key)
		if slices.Contains(key.Path, "") {
			m.AtField(path+".path", "has an empty step", "write the names and indices that lead to the value")
		}
	}
}

// checkVariable checks the environment variables that a key of the credentials Secret sets.
func (m *Metadata) checkVariable(path string, key v1alpha1.CredentialKey) {
	switch {
	case key.File == "":
		m.checkVariableName(path+".env", key.Env)
	case key.Env != "":
		m.AtField(path+".file", fmt.Sprintf("is %s, but env is %s", key.File, key.Env),
			"keep one: a provider reads either the value or a file")
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
		// The cluster may provide what the Secret lacks.
		claim(path, variable.Name, variable.From != "")
		m.checkSource(fmt.Sprintf("spec.environment[%d].from", i), variable)
	}
}

func (m *Metadata) checkVariableName(path, name string) {
	switch {
	case !variableName.MatchString(name):
		m.AtField(path, fmt.Sprintf("is %q, which is not a valid name of an environment variable", name),
			"use letters, digits and '_'")
	case reservedName.MatchString(name):
		m.UnsafeField(path, fmt.Sprintf("is %s, which controls the engine and is reserved for the operator", name),
			"use a variable that the provider reads")
	}
}

func (m *Metadata) readIdentities() {
	identities, faults := module.NewIdentities(m.Spec.Identity)
	for i, fault := range faults {
		m.AtField(fmt.Sprintf("spec.identity[%d]", i), fault.Error(), "see spec.identity in docs/contracts/module.md")
	}
	m.Identities = identities
}

// CheckInstances checks that module.yaml says where the resources with these addresses carry their
// Machine's UID, which a lookup compares. After another breach, their types are not certain.
func (m *Metadata) CheckInstances(instances ...string) {
	if m.Spec.Lookup == nil || len(m.breaches) > 0 {
		return
	}
	for _, address := range instances {
		if !m.Identities.Has(address) {
			m.AtField("spec.identity", "does not list "+module.TypeOf(address)+", the type of the instance", "say where it carries the UID of the Machine, by which lookup/ must find it")
		}
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
		m.AtField("spec.lookup.settleSeconds", fmt.Sprintf("is %d", *seconds),
			fmt.Sprintf("write 0 to %d, or remove it", maxSettleSeconds))
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

// CheckCreates checks spec.adopt.creates against the types of the module's resources, which are nil
// if unknown, and the address of its instance. m may be nil.
func (m *Metadata) CheckCreates(types map[string]bool, instances ...string) {
	if m == nil || m.Spec.Adopt == nil {
		return
	}
	seen := map[string]bool{}
	for i, name := range m.Spec.Adopt.Creates {
		at := fmt.Sprintf("spec.adopt.creates[%d]", i)
		switch {
		case seen[name]:
			m.AtField(at, fmt.Sprintf("names %s twice", name), "keep one")
		case name == builtInType:
			m.AtField(at, "names "+name+", which exists only in the state", "remove it: an adoption may always create it")
		case slices.ContainsFunc(instances,
			func(address string) bool { return strings.TrimSuffix(address, "[0]") == name+"."+instanceName }):
			m.AtField(at, "names "+name+", the type of the instance, which is imported or not adopted", "remove it")
		case types != nil && !types[name]:
			m.AtField(at, fmt.Sprintf("is %q, which is not the type of a resource of the module", name),
				"use the type of a resource that cannot be imported")
		}
		seen[name] = true
	}
}

// CheckPartOfInstance checks spec.partOfInstance like CheckCreates checks spec.adopt.creates.
func (m *Metadata) CheckPartOfInstance(types map[string]bool, instances ...string) {
	if m == nil {
		return
	}
	for i, name := range m.Spec.PartOfInstance {
		at := fmt.Sprintf("spec.partOfInstance[%d]", i)
		switch {
		case slices.ContainsFunc(instances,
			func(address string) bool { return strings.TrimSuffix(address, "[0]") == name+"."+instanceName }):
			m.AtField(at, "names "+name+", the type of the instance, which would not be destroyed", "remove it")
		case types != nil && !types[name]:
			m.AtField(at, fmt.Sprintf("is %q, which is not the type of a resource of the module", name),
				"use the type of a resource that ends with the instance")
		}
	}
}

// CheckDisruptive checks spec.disruptive against the types of the module's resources, which are nil
// if unknown. m may be nil.
func (m *Metadata) CheckDisruptive(types map[string]bool) {
	if m == nil {
		return
	}
	seen := map[string]bool{}
	for i, entry := range m.Spec.Disruptive {
		at := fmt.Sprintf("spec.disruptive[%d]", i)
		if types != nil && !types[entry.Type] {
			m.AtField(at+".type", fmt.Sprintf("is %q, which is not the type of a resource of the module", entry.Type),
				"use the type of a resource of the module")
		}
		if entry.Effect == "" || entry.Effect != OneLine(entry.Effect) {
			m.AtField(at+".effect", "does not describe in one line what happens to the instance",
				"write for example: stops and starts the instance")
		}
		if len(entry.Attributes) == 0 {
			m.AtField(at+".attributes", "is empty", "name at least one attribute")
		}
		for j, name := range entry.Attributes {
			if key := entry.Type + "." + name; name == "" || seen[key] {
				m.AtField(fmt.Sprintf("%s.attributes[%d]", at, j), fmt.Sprintf("is %q, which is empty or a duplicate", name),
					"name each attribute once")
			}
			seen[entry.Type+"."+name] = true
		}
	}
}

func (m *Metadata) checkErrors() {
	errors := m.Spec.Errors
	if errors == nil {
		return
	}
	m.Final = m.patterns("spec.errors.final", errors.Final, "so every error would fail the Machine for good",
		"match the words with which the infrastructure rejects what it will never accept")
	m.NothingMade = m.patterns("spec.errors.nothingMade", errors.NothingMade,
		"so no lost instance would ever be looked up",
		"match the words with which the infrastructure rejects the request to create the instance")
	for i, one := range errors.Hints {
		at := fmt.Sprintf("spec.errors.hints[%d]", i)
		if one.Hint == "" || one.Hint != OneLine(one.Hint) {
			m.AtField(at+".hint", "does not say in one line what to do", "name the field to correct")
		}
		for _, matches := range m.patterns(at+".matches", []string{one.Matches}, "so every error would have the hint",
			"match the words of the error") {
			m.Hints = append(m.Hints, module.Hint{Matches: matches, Text: one.Hint})
		}
	}
}

// patterns compiles regular expressions for engine errors, and reports those that match the empty
// string, and hence everything.
func (m *Metadata) patterns(path string, patterns []string, consequence, fix string) []*regexp.Regexp {
	var usable []*regexp.Regexp
	for i, pattern := range patterns {
		at := fmt.Sprintf("%s[%d]", path, i)
		compiled, err := regexp.Compile(pattern)
		switch {
		case err != nil:
			m.AtField(at, "is not a regular expression: "+OneLine(err.Error()), "use RE2 syntax")
		case compiled.MatchString(""):
			m.AtField(at, "matches every text, "+consequence, fix)
		default:
			usable = append(usable, compiled)
		}
	}
	return usable
}
