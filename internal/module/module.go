package module

import (
	"io/fs"
	"regexp"
	"slices"
	"time"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module/hclfuncs"
	"github.com/machine-iac/machine-iac-operator/internal/module/snapshot"
)

// MetadataFile is the name of the file that describes a module to the operator.
const MetadataFile = "module.yaml"

// Defaults of fields that a module.yaml may leave out.
const (
	// DefaultCredentialsPath is the default of spec.credentials.path.
	DefaultCredentialsPath = "credentialsSecret.name"
	// DefaultUserDataPath is the default of spec.userData.path.
	DefaultUserDataPath = "userDataSecret.name"
	// defaultSettleSeconds is the default of spec.lookup.settleSeconds.
	defaultSettleSeconds = 60
)

// Definition is what a module is made of, as it is read from its files.
type Definition struct {
	// Name is the module's name.
	Name string
	// Spec is the spec of module.yaml with defaults filled in.
	Spec v1alpha1.ModuleSpec
	// Files are those that influence a run.
	Files snapshot.Files
	// LookupFiles are the paths in Files of what finds a lost instance, sorted.
	LookupFiles []string
	// AdoptFiles and InventoryFiles are the same for what brings in an instance that something else has made, and for what lists instances.
	AdoptFiles, InventoryFiles []string
	// InstanceCheck is HCL that has the variables and the providers of the module, and nothing else; empty where the providers need more.
	InstanceCheck []byte
	// Variables are those that the module declares, by name.
	Variables map[string]Variable
	// Providers are sorted by source.
	Providers []Provider
	// Instances are the addresses that the resource has which is the instance: several where one of them is made, none where only the program says.
	Instances []string
	// Absent and Final match errors of the engine: that the instance to import does not exist, and that no retry can help.
	Absent, Final []*regexp.Regexp
	// AdoptAbsent match errors of the engine: that the instance to adopt does not exist.
	AdoptAbsent []*regexp.Regexp
	// InstanceTypes is the catalogue of instance types by name.
	InstanceTypes map[string]v1alpha1.InstanceTypeCapacity
	// Rights are the permissions that the credentials must have.
	Rights []Right
	// Defaults are the fields of the providerSpec that are filled in.
	Defaults []Default
	// Checks are the assertions that warn.
	Checks []Check
	// Locals are a stack's, each behind those that it refers to.
	Locals []Local
	// Packages are those that a stack pins, sorted by name.
	Packages []Package
}

// Module is a provider module that keeps the contract. It never changes and may be shared.
type Module struct {
	definition Definition
	digest     string
}

// New returns the module of a definition, which the caller must not change any more. It does not check the contract; the package load does.
func New(definition Definition) *Module {
	definition.meter()
	return &Module{definition: definition, digest: definition.Files.Digest()}
}

// meter has all expressions evaluated within limits.
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

// Engine returns what runs the module.
func (m *Module) Engine() v1alpha1.Engine {
	if m.definition.Spec.Engine == "" {
		return v1alpha1.EngineTerraform
	}
	return m.definition.Spec.Engine
}

// Name returns the module's name.
func (m *Module) Name() string { return m.definition.Name }

// Digest returns the sha256 over all files of the module that influence a run, in hex.
func (m *Module) Digest() string { return m.digest }

// Reference returns name@sha256:digest.
func (m *Module) Reference() string { return m.definition.Name + "@sha256:" + m.digest }

// Spec returns the spec of module.yaml with defaults filled in; userData is always there. The path to a Secret's name is empty where
// provider_spec has no field for it. The caller must not change what it points to.
func (m *Module) Spec() v1alpha1.ModuleSpec { return m.definition.Spec }

// Files returns all files of the module that influence a run: the HCL, the lock file or the program, module.yaml, the searches and any file that the
// HCL or the program may read; not a catalogue of instance types. They are held in memory, and are exactly what Digest covers.
func (m *Module) Files() fs.FS { return m.definition.Files }

// LookupFiles returns the paths in Files of the HCL that finds a lost instance, sorted, or of the program that does; none when the module
// has no lookup.
func (m *Module) LookupFiles() []string { return slices.Clone(m.definition.LookupFiles) }

// AdoptFiles returns the paths in Files of the HCL, or of the program, that brings in an instance which something else has made, sorted; none when
// the module cannot adopt.
func (m *Module) AdoptFiles() []string { return slices.Clone(m.definition.AdoptFiles) }

// AdoptCreates returns the types of resources that an adoption may create besides those that are in the state only.
func (m *Module) AdoptCreates() []string {
	if m.definition.Spec.Adopt == nil {
		return nil
	}
	return slices.Clone(m.definition.Spec.Adopt.Creates)
}

// InventoryFiles returns the paths in Files of the HCL that lists the instances of a cluster, sorted; none when the module has no inventory.
func (m *Module) InventoryFiles() []string { return slices.Clone(m.definition.InventoryFiles) }

// InstanceCheck returns the HCL with which it is looked whether the instance is still there, and how often that is done; nothing and zero where it
// is left to drift checks. The caller must not change the HCL.
func (m *Module) InstanceCheck() (hcl []byte, interval time.Duration) {
	wanted := m.definition.Spec.InstanceCheck
	if wanted == nil || len(m.definition.InstanceCheck) == 0 {
		return nil, 0
	}
	return m.definition.InstanceCheck, time.Duration(wanted.IntervalSeconds) * time.Second
}

// VolumeWait returns how long the deletion of an instance waits for volumes that are attached to its Node, from the end of the drain on; zero for not at
// all.
func (m *Module) VolumeWait() time.Duration {
	if volumes := m.definition.Spec.AttachedVolumes; volumes != nil {
		return time.Duration(volumes.WaitSeconds) * time.Second
	}
	return 0
}

// Absent reports whether an error of the engine says, in the words that module.yaml lists, that the instance to import does not
// exist.
func (m *Module) Absent(message string) bool { return matchesAny(m.definition.Absent, message) }

// AdoptAbsent reports the same of the instance to adopt.
func (m *Module) AdoptAbsent(message string) bool {
	return matchesAny(m.definition.AdoptAbsent, message)
}

// Final reports whether an error of the engine, its summary and its detail on lines of their own, says in the words that module.yaml lists
// that the configuration is wrong and no retry can help.
func (m *Module) Final(text string) bool { return matchesAny(m.definition.Final, text) }

func matchesAny(patterns []*regexp.Regexp, text string) bool {
	return slices.ContainsFunc(patterns, func(pattern *regexp.Regexp) bool { return pattern.MatchString(text) })
}

// Settle returns how long after the end of a run that died a lookup that finds nothing counts.
func (m *Module) Settle() time.Duration {
	seconds := int64(defaultSettleSeconds)
	if lookup := m.definition.Spec.Lookup; lookup != nil && lookup.SettleSeconds != nil {
		seconds = *lookup.SettleSeconds
	}
	return time.Duration(seconds) * time.Second
}

// Constants returns the environment variables of module.yaml that have constant values.
func (m *Module) Constants() map[string]string {
	constants := map[string]string{}
	for _, variable := range m.definition.Spec.Environment {
		if variable.From == "" {
			constants[variable.Name] = variable.Value
		}
	}
	return constants
}

// Variable returns a variable; one without a type where the module does not declare it.
func (m *Module) Variable(name string) Variable { return m.definition.Variables[name] }

// Defaults returns the fields of the providerSpec that module.yaml says are filled in, in its order. The caller must not change them.
func (m *Module) Defaults() []Default { return m.definition.Defaults }

// Checks returns the assertions that warn about values of variables, in the order of the module. The caller must not change them.
func (m *Module) Checks() []Check { return m.definition.Checks }

// Providers returns what the lock file pins, or a stack's packages bridge, sorted by source. The same provider may appear once for each
// registry.
func (m *Module) Providers() []Provider { return slices.Clone(m.definition.Providers) }

// Packages returns what a stack pins, sorted by name.
func (m *Module) Packages() []Package { return slices.Clone(m.definition.Packages) }

// InstanceAddress returns the address of the resource that is the instance, as the engine reports it: "kubectl_manifest.this", or
// "kubectl:index/manifest:Manifest.this" for a stack. Empty for a stack whose program is not YAML, and where it may have several addresses.
func (m *Module) InstanceAddress() string {
	if len(m.definition.Instances) != 1 {
		return ""
	}
	return m.definition.Instances[0]
}

// InstanceAddresses returns the addresses of all resources of which one is the instance.
func (m *Module) InstanceAddresses() []string { return slices.Clone(m.definition.Instances) }

// MayBeInstance reports whether the resource with an address is the instance, or would be if it were made.
func (m *Module) MayBeInstance(address string) bool {
	return slices.Contains(m.definition.Instances, address)
}

// InstanceTypes returns the module's catalogue of instance types by name; empty when it has none. The caller must not change it.
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

// FoldsCase reports whether fields of the kind are matched whatever their case.
func (m *Module) FoldsCase(kind string) bool {
	return slices.ContainsFunc(m.definition.Spec.ProviderSpecs, func(served v1alpha1.ProviderSpecKind) bool {
		return served.Kind == kind && served.FieldNames == v1alpha1.FieldNamesCaseInsensitive
	})
}

// KindOfPlatform returns the kind that a providerSpec without one is of; empty where the module serves none.
func (m *Module) KindOfPlatform() string {
	if m.definition.Spec.Platform == "" || len(m.definition.Spec.ProviderSpecs) == 0 {
		return ""
	}
	return m.definition.Spec.ProviderSpecs[0].Kind
}

// ServesKind reports whether the module serves the providerSpec kind in any version.
func (m *Module) ServesKind(kind string) bool {
	return slices.ContainsFunc(m.definition.Spec.ProviderSpecs, func(served v1alpha1.ProviderSpecKind) bool { return served.Kind == kind })
}
