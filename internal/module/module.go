package module

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module/hclfuncs"
)

// MetadataFile describes a module to the operator.
const MetadataFile = "module.yaml"

// Defaults of optional fields of module.yaml.
const (
	// DefaultCredentialsPath is the default of spec.credentials.path.
	DefaultCredentialsPath = "credentialsSecret.name"
	// DefaultUserDataPath is the default of spec.userData.path.
	DefaultUserDataPath = "userDataSecret.name"
	// defaultSettleSeconds is the default of spec.lookup.settleSeconds.
	defaultSettleSeconds = 60
)

// Definition is the content of a module, as read from its files.
type Definition struct {
	// Name is the module's name.
	Name string
	// Spec is the spec of module.yaml with defaults applied.
	Spec v1alpha1.ModuleSpec
	// Files are the files that influence a run.
	Files Files
	// LookupFiles are the paths in Files that find a lost instance, sorted.
	LookupFiles []string
	// AdoptFiles, InventoryFiles and CapacityFiles are likewise the files that import an existing
	// instance, that list instances, and that read the size of an instance type.
	AdoptFiles, InventoryFiles, CapacityFiles []string
	// Bare is the module without its resources.
	Bare BareRoot
	// Variables are the module's variables, by name.
	Variables map[string]Variable
	// Providers are sorted by source.
	Providers []Provider
	// Instances are the possible addresses of the instance: several if the module creates one of them,
	// none if only the program knows.
	Instances []string
	// Identities read which Machine a resource belongs to, by resource type.
	Identities Identities
	// Absent and Final match engine errors that mean that the instance to import does not exist, and
	// that retrying cannot help.
	Absent, Final []*regexp.Regexp
	// NothingMade match engine errors after which the instance certainly was not created.
	NothingMade []*regexp.Regexp
	// Hints are advice on engine errors.
	Hints []Hint
	// AdoptAbsent match engine errors that mean that the instance to adopt does not exist.
	AdoptAbsent []*regexp.Regexp
	// InstanceTypes is the catalog of instance types, by name.
	InstanceTypes map[string]v1alpha1.InstanceTypeCapacity
	// Rights are the permissions that the credentials need.
	Rights []Right
	// Defaults of fields of the providerSpec.
	Defaults []Default
	// Checks are assertions that only warn.
	Checks []Check
	// Locals of a stack, sorted after those that they refer to.
	Locals []Local
	// Packages that a stack pins, sorted by name.
	Packages []Package
}

// Hint is advice on engine errors that match.
type Hint struct {
	Matches *regexp.Regexp
	Text    string
}

// Module is a provider module that complies with the contract. It is immutable and safe for
// concurrent use.
type Module struct {
	definition Definition
	digest     string
}

// New returns the module of a definition, which the caller must not change afterwards. It does not
// check the contract; package load does.
func New(definition Definition) *Module {
	definition.meter()
	return &Module{definition: definition, digest: definition.Files.Digest()}
}

// meter adds evaluation limits to all expressions.
func (d *Definition) meter() {
	for _, variable := range d.Variables {
		for i := range variable.Validations {
			variable.Validations[i].meter()
		}
	}
	for i := range d.Checks {
		d.Checks[i].meter()
	}
	for i, one := range d.Locals {
		d.Locals[i].Expression = hclfuncs.Metered(one.Expression)
	}
	for i, right := range d.Rights {
		if right.Condition != nil {
			d.Rights[i].Condition = hclfuncs.Metered(right.Condition)
		}
	}
}

// Name returns the module's name.
func (m *Module) Name() string { return m.definition.Name }

// Digest returns the hex SHA-256 of all files of the module that influence a run.
func (m *Module) Digest() string { return m.digest }

// Reference returns name@sha256:digest.
func (m *Module) Reference() string { return m.definition.Name + "@sha256:" + m.digest }

// Spec returns the spec of module.yaml with defaults applied. userData is always set. The path to a
// Secret's name is empty if provider_spec has no field for it. The caller must not modify what it
// points to.
func (m *Module) Spec() v1alpha1.ModuleSpec { return m.definition.Spec }

// Files returns exactly the files that Digest covers, in memory: those that influence a run, such
// as HCL, the lock file or the program, module.yaml, the searches, and any file that the HCL or the
// program may read. It excludes a catalog of instance types.
func (m *Module) Files() fs.FS { return m.definition.Files }

// LookupFiles returns the sorted paths in Files of the HCL or the program that finds a lost
// instance. It is empty if the module has no lookup.
func (m *Module) LookupFiles() []string { return slices.Clone(m.definition.LookupFiles) }

// AdoptFiles returns the sorted paths in Files of the HCL or the program that imports an existing
// instance. It is empty if the module cannot adopt.
func (m *Module) AdoptFiles() []string { return slices.Clone(m.definition.AdoptFiles) }

// AdoptCreates returns the types of resources that an adoption may create, besides those that exist
// only in the state.
func (m *Module) AdoptCreates() []string {
	if m.definition.Spec.Adopt == nil {
		return nil
	}
	return slices.Clone(m.definition.Spec.Adopt.Creates)
}

// InventoryFiles returns the sorted paths in Files of the HCL that lists the instances of a
// cluster. It is empty if the module has no inventory.
func (m *Module) InventoryFiles() []string { return slices.Clone(m.definition.InventoryFiles) }

// CapacityFiles returns the sorted paths in Files of the HCL that reads the size of an instance
// type. It is empty if only the catalog knows it.
func (m *Module) CapacityFiles() []string { return slices.Clone(m.definition.CapacityFiles) }

// Bare returns the module without its resources. The caller must not modify it.
func (m *Module) Bare() BareRoot { return m.definition.Bare }

// LookInterval returns how often to check that the instance still exists. Zero leaves it to drift
// checks.
func (m *Module) LookInterval() time.Duration {
	wanted := m.definition.Spec.InstanceCheck
	if wanted == nil || len(m.definition.Bare.HCL) == 0 {
		return 0
	}
	return time.Duration(wanted.IntervalSeconds) * time.Second
}

// VolumeWait returns how long, after the drain, deletion waits for volumes attached to the Node.
// Zero means that it does not wait.
func (m *Module) VolumeWait() time.Duration {
	if volumes := m.definition.Spec.AttachedVolumes; volumes != nil {
		return time.Duration(volumes.WaitSeconds) * time.Second
	}
	return 0
}

// Absent reports whether an engine error means that the instance to import does not exist,
// according to module.yaml.
func (m *Module) Absent(message string) bool { return matchesAny(m.definition.Absent, message) }

// AdoptAbsent is Absent for the instance to adopt.
func (m *Module) AdoptAbsent(message string) bool {
	return matchesAny(m.definition.AdoptAbsent, message)
}

// AdoptsByName reports whether adopt/ can search for an instance by the Machine's name alone.
func (m *Module) AdoptsByName() bool {
	return m.definition.Spec.Adopt != nil && m.definition.Spec.Adopt.ByName
}

// Identities read which Machine a resource belongs to. The caller must not modify them.
func (m *Module) Identities() Identities { return m.definition.Identities }

// Identifies reports whether it is known where the instance carries its Machine's UID.
func (m *Module) Identifies() bool {
	return len(m.definition.Identities) > 0 &&
		!slices.ContainsFunc(m.definition.Instances,
			func(address string) bool { return !m.definition.Identities.Has(address) })
}

// Final reports whether an engine error means that the configuration is wrong and retrying cannot
// help, according to module.yaml. text is the summary and the detail on separate lines.
func (m *Module) Final(text string) bool { return matchesAny(m.definition.Final, text) }

// NothingMade reports whether an engine error means that the instance certainly was not created.
// text is as for Final. An expression must match where the provider's own words begin: what follows
// may quote a name or a tag from the providerSpec, or a server.
func (m *Module) NothingMade(text string) bool {
	text = strings.TrimPrefix(text, bridgePrefix.FindString(text))
	return slices.ContainsFunc(m.definition.NothingMade, func(pattern *regexp.Regexp) bool {
		at := pattern.FindStringIndex(text)
		return at != nil && at[0] == 0
	})
}

// bridgePrefix matches what Pulumi's bridge writes before the words of a provider.
var bridgePrefix = regexp.MustCompile(`^(?:sdk-v2/provider2\.go:\d+: )?` +
	`(?:sdk\.helper_schema: |1 error occurred:\s+\* )?`)

// Effects returns what an in-place update of an attribute does to a running instance, by resource
// type and attribute.
func (m *Module) Effects() map[string]map[string]string {
	effects := map[string]map[string]string{}
	for _, entry := range m.definition.Spec.Disruptive {
		for _, name := range entry.Attributes {
			if effects[entry.Type] == nil {
				effects[entry.Type] = map[string]string{}
			}
			effects[entry.Type][name] = entry.Effect
		}
	}
	return effects
}

// Hint returns advice on an engine error from module.yaml, or "".
func (m *Module) Hint(text string) string {
	for _, one := range m.definition.Hints {
		if one.Matches.MatchString(text) {
			return one.Text
		}
	}
	return ""
}

func matchesAny(patterns []*regexp.Regexp, text string) bool {
	return slices.ContainsFunc(patterns, func(pattern *regexp.Regexp) bool { return pattern.MatchString(text) })
}

// Settle returns how long after a run died its lookup may find nothing before that is conclusive.
func (m *Module) Settle() time.Duration {
	seconds := int64(defaultSettleSeconds)
	if lookup := m.definition.Spec.Lookup; lookup != nil && lookup.SettleSeconds != nil {
		seconds = *lookup.SettleSeconds
	}
	return time.Duration(seconds) * time.Second
}

// Constants returns the environment variables of module.yaml with constant values.
func (m *Module) Constants() map[string]string {
	constants := map[string]string{}
	for _, variable := range m.definition.Spec.Environment {
		if variable.From == "" {
			constants[variable.Name] = variable.Value
		}
	}
	return constants
}

// Variable returns a variable. It has no type if the module does not declare it.
func (m *Module) Variable(name string) Variable { return m.definition.Variables[name] }

// Defaults returns the defaults of providerSpec fields in the order of module.yaml. The caller must
// not modify them.
func (m *Module) Defaults() []Default { return m.definition.Defaults }

// Checks returns the assertions that only warn, in the order of the module. The caller must not
// modify them.
func (m *Module) Checks() []Check { return m.definition.Checks }

// Providers returns the providers that the lock file pins, or that a stack's packages bridge,
// sorted by source. A provider may appear once for each registry.
func (m *Module) Providers() []Provider { return slices.Clone(m.definition.Providers) }

// Packages returns the packages that a stack pins, sorted by name.
func (m *Module) Packages() []Package { return slices.Clone(m.definition.Packages) }

// InstanceAddress returns the address of the instance as the engine reports it:
// "kubectl_manifest.this", or "kubectl:index/manifest:Manifest.this" for a stack. It is empty for a
// stack whose program is not YAML, and if there are several possible addresses.
func (m *Module) InstanceAddress() string {
	if len(m.definition.Instances) != 1 {
		return ""
	}
	return m.definition.Instances[0]
}

// InstanceAddresses returns the possible addresses of the instance.
func (m *Module) InstanceAddresses() []string { return slices.Clone(m.definition.Instances) }

// MayBeInstance reports whether the resource with an address is, or would be, the instance.
func (m *Module) MayBeInstance(address string) bool {
	return slices.Contains(m.definition.Instances, address)
}

// InstanceTypes returns the module's catalog of instance types by name, which may be empty. The
// caller must not modify it.
func (m *Module) InstanceTypes() map[string]v1alpha1.InstanceTypeCapacity {
	return m.definition.InstanceTypes
}

// Serves reports whether the module serves the providerSpec kind.
func (m *Module) Serves(apiVersion, kind string) bool {
	for _, served := range m.definition.Spec.ProviderSpecs {
		if served.Kind == kind && slices.Contains(served.APIVersions, apiVersion) {
			return true
		}
	}
	return false
}

// FieldAliases maps other names of top-level fields of the kind to the module's.
func (m *Module) FieldAliases(kind string) map[string]string {
	for _, served := range m.definition.Spec.ProviderSpecs {
		if served.Kind == kind {
			return served.FieldAliases
		}
	}
	return nil
}

// FoldsCase reports whether field names of the kind are case-insensitive.
func (m *Module) FoldsCase(kind string) bool {
	return slices.ContainsFunc(m.definition.Spec.ProviderSpecs, func(served v1alpha1.ProviderSpecKind) bool {
		return served.Kind == kind && served.FieldNames == v1alpha1.FieldNamesCaseInsensitive
	})
}

// KindOfPlatform returns the kind of a providerSpec without a kind, or "" if the module serves
// none.
func (m *Module) KindOfPlatform() string {
	if m.definition.Spec.Platform == "" || len(m.definition.Spec.ProviderSpecs) == 0 {
		return ""
	}
	return m.definition.Spec.ProviderSpecs[0].Kind
}

// KindOfAlias returns the kind that the module serves under an alias, or "". An alias is valid
// without an apiVersion, or with one of a group that the kind is served in.
func (m *Module) KindOfAlias(apiVersion, alias string) string {
	group, _, _ := strings.Cut(apiVersion, "/")
	for _, served := range m.definition.Spec.ProviderSpecs {
		inGroup := func(version string) bool { return strings.HasPrefix(version, group+"/") }
		if slices.Contains(served.Aliases, alias) && (apiVersion == "" || slices.ContainsFunc(served.APIVersions, inGroup)) {
			return served.Kind
		}
	}
	return ""
}

// ServesKind reports whether the module serves the providerSpec kind in any version.
func (m *Module) ServesKind(kind string) bool {
	return slices.ContainsFunc(m.definition.Spec.ProviderSpecs,
		func(served v1alpha1.ProviderSpecKind) bool { return served.Kind == kind })
}
