package module

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module/snapshot"
)

// Module is a provider module that keeps the contract. It never changes after Load and may be shared.
type Module struct {
	name      string
	spec      v1alpha1.ModuleSpec
	digest    string
	files     snapshot.Files
	variables map[string]Variable
	providers []Provider
	instance  string
	absent    []*regexp.Regexp
	final     []*regexp.Regexp
	sizes     catalogue
	defaults  []Default
	checks    []Check
	// locals and packages are a stack's.
	locals   []local
	packages []Package
}

// Load reads the module in the root of fsys and holds it to the contract. A module that breaks it is answered with a
// [*ContractError] that lists every breach; any other error is one of reading fsys.
func Load(fsys fs.FS) (*Module, error) {
	files, err := snapshot.Read(fsys)
	if err != nil {
		return nil, err
	}
	found := &report{}
	meta := readMetadata(files, found)
	checkPeople(files, found)
	load := loadHCL
	if isStack(meta, files) {
		load = loadStack
	}
	loaded := load(files, meta, found)
	if meta != nil {
		checkPaths(meta, loaded.variables[VariableProviderSpec])
		loaded.defaults = readDefaults(meta, loaded.variables[VariableProviderSpec])
		loaded.name, loaded.spec = meta.Metadata.Name, meta.Spec
	}
	if err := found.err(loaded); err != nil {
		return nil, err
	}
	loaded.files = files.Only(func(name string) bool { return influencesRun(name) && !meta.isCatalogue(name) })
	loaded.digest = loaded.files.Digest()
	loaded.absent, loaded.final, loaded.sizes = meta.absent, meta.final, meta.sizes
	return loaded, nil
}

// loadHCL reads a module that OpenTofu or Terraform runs, and holds it to what the contract says of those. meta may be nil.
func loadHCL(files snapshot.Files, meta *metadata, found *report) *Module {
	checkLayout(files, found)
	if _, exists := files[projectFile]; exists {
		found.add(Breach{File: projectFile, Problem: "is a program of Pulumi, but spec.engine of module.yaml is Terraform", Fix: "write engine: Pulumi, or remove the file"})
	}
	loaded, blocks, required := readHCL(files, found)
	checkOutputs(blocks["output"], found)
	lookupCheck{files: files, metadata: meta, required: required, instance: loaded.instance, found: found}.check()
	return loaded
}

// readHCL reads what a run by OpenTofu or Terraform needs.
func readHCL(files snapshot.Files, found *report) (*Module, map[string][]*hclsyntax.Block, map[string]requirement) {
	blocks := sortBlocks(parseRoot(files, found), found)
	required := readRequirements(blocks["terraform"], found)
	read := &Module{
		variables: checkVariables(blocks["variable"], found),
		providers: checkLock(files, required, found),
		instance:  checkResources(blocks, required, found),
	}
	read.checks = readChecks(blocks["check"], read.variables, found)
	return read, blocks, required
}

// LoadAll loads the module in every folder of fsys. The error joins those of all folders, each with the folder's name.
func LoadAll(fsys fs.FS) ([]*Module, error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, fmt.Errorf("listing modules: %w", err)
	}
	var loaded []*Module
	var failed []error
	for _, entry := range entries {
		if !entry.IsDir() || strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		folder, err := fs.Sub(fsys, entry.Name())
		if err != nil {
			return nil, fmt.Errorf("opening module folder %s: %w", entry.Name(), err)
		}
		one, err := loadAs(entry.Name(), folder)
		if err != nil {
			failed = append(failed, fmt.Errorf("loading module folder %s: %w", entry.Name(), err))
			continue
		}
		loaded = append(loaded, one)
	}
	if len(failed) > 0 {
		return nil, errors.Join(failed...)
	}
	return loaded, nil
}

// loadAs loads a module that must be called name.
func loadAs(name string, folder fs.FS) (*Module, error) {
	one, err := Load(folder)
	if err != nil {
		return nil, err
	}
	if one.Name() != name {
		return nil, &ContractError{Module: one.Name(), Engine: one.Engine(), Breaches: []Breach{{
			File: metadataFile, What: "metadata.name", Problem: fmt.Sprintf("is %q in the folder %s", one.Name(), name), Fix: "use the folder's name",
		}}}
	}
	return one, nil
}

// Engine answers what runs the module.
func (m *Module) Engine() v1alpha1.Engine {
	if m.spec.Engine == "" {
		return v1alpha1.EngineTerraform
	}
	return m.spec.Engine
}

// Name answers the module's name.
func (m *Module) Name() string { return m.name }

// Digest answers the sha256 over whatever of the module influences a run, in hex.
func (m *Module) Digest() string { return m.digest }

// Reference answers name@sha256:digest.
func (m *Module) Reference() string { return m.name + "@sha256:" + m.digest }

// Spec answers the spec of module.yaml with defaults filled in; userData is always there. The path to a Secret's name is empty where
// provider_spec has no field for it. The caller must not change what it points to.
func (m *Module) Spec() v1alpha1.ModuleSpec { return m.spec }

// Files answers whatever of the module influences a run: the HCL, the lock file or the program, module.yaml, lookup/ and any file that the
// HCL or the program may read; not a catalogue of instance types. It is held in memory, and is exactly what Digest covers.
func (m *Module) Files() fs.FS { return m.files }

// LookupFiles answers the paths in Files of the HCL that finds a lost instance, sorted, or of the program that does; none when the module
// has no lookup.
func (m *Module) LookupFiles() []string {
	if m.Engine() == v1alpha1.EnginePulumi {
		return m.files.Names(func(name string) bool { return name == lookupProjectFile })
	}
	return m.files.Names(isLookupHCL)
}

// Absent tells whether an error of the engine says, in the words that module.yaml lists, that the instance to import does not
// exist.
func (m *Module) Absent(message string) bool {
	return slices.ContainsFunc(m.absent, func(pattern *regexp.Regexp) bool { return pattern.MatchString(message) })
}

// Final reports whether an error of the engine, its summary and its detail on lines of their own, says in the words that module.yaml lists that the configuration is wrong and
// no retry can help.
func (m *Module) Final(text string) bool {
	return slices.ContainsFunc(m.final, func(pattern *regexp.Regexp) bool { return pattern.MatchString(text) })
}

// Settle returns how long after the end of a run that died a lookup that finds nothing counts.
func (m *Module) Settle() time.Duration {
	seconds := int64(v1alpha1.DefaultSettleSeconds)
	if m.spec.Lookup != nil && m.spec.Lookup.SettleSeconds != nil {
		seconds = *m.spec.Lookup.SettleSeconds
	}
	return time.Duration(seconds) * time.Second
}

// Variable answers one of the three variables.
func (m *Module) Variable(name string) Variable { return m.variables[name] }

// Providers answers what the lock file pins, or a stack's packages bridge, sorted by source. The same provider may appear once for each
// registry.
func (m *Module) Providers() []Provider { return slices.Clone(m.providers) }

// InstanceAddress answers the address of the resource that is the instance, as the engine's reports have it: "kubectl_manifest.this", or
// "kubectl:index/manifest:Manifest.this" for a stack. Empty for a stack whose program is not YAML.
func (m *Module) InstanceAddress() string { return m.instance }

// Serves tells whether the module serves the providerSpec kind.
func (m *Module) Serves(apiVersion, kind string) bool {
	for _, served := range m.spec.ProviderSpecs {
		if served.Kind == kind && slices.Contains(served.APIVersions, apiVersion) {
			return true
		}
	}
	return false
}

// ServesKind tells whether the module serves the providerSpec kind in any version.
func (m *Module) ServesKind(kind string) bool {
	return slices.ContainsFunc(m.spec.ProviderSpecs, func(served v1alpha1.ProviderSpecKind) bool { return served.Kind == kind })
}

// influencesRun tells whether a file can make a difference to a run. Whatever is not known to make none does: HCL can read
// any file beside it.
func influencesRun(name string) bool {
	folder, _, nested := strings.Cut(name, "/")
	if nested {
		return folder != "tests" && folder != "examples"
	}
	return path.Ext(name) != ".md"
}

func parseRoot(files snapshot.Files, found *report) []*hclsyntax.Body {
	var bodies []*hclsyntax.Body
	for _, name := range files.Names(isRootHCL) {
		if body := parse(files[name], name, found); body != nil {
			bodies = append(bodies, body)
		}
	}
	return bodies
}

// checkPeople checks that the files are there which people read first.
func checkPeople(files snapshot.Files, found *report) {
	for _, name := range []string{"README.md", "examples/machineset.yaml"} {
		if _, exists := files[name]; !exists {
			found.add(Breach{File: name, Problem: "is missing", Fix: "write one"})
		}
	}
}

// checkLayout checks which files there are. Files that would change what the engine reads beside the .tf files are refused,
// since the other rules look at the .tf files only.
func checkLayout(files snapshot.Files, found *report) {
	tests := files.Names(func(name string) bool { return path.Dir(name) == "tests" && strings.HasSuffix(name, ".tftest.hcl") })
	if len(tests) == 0 {
		found.add(Breach{File: "tests", Problem: "has no *.tftest.hcl", Fix: "write at least one test with mocked providers"})
	}
	for name := range files {
		if folder := path.Dir(name); folder != "." && folder != lookupFolder {
			continue
		}
		base := path.Base(name)
		switch {
		case strings.HasSuffix(base, ".tf.json"), strings.HasSuffix(base, ".tofu"), strings.HasSuffix(base, ".tofu.json"):
			found.add(Breach{File: name, Problem: "is HCL that only some engines read, or not HCL's own syntax", Fix: "write a .tf file"})
		case base == "override.tf", strings.HasSuffix(base, "_override.tf"):
			found.add(Breach{File: name, Problem: "overrides what other files say", Fix: "change those files instead"})
		case strings.HasSuffix(base, ".tfvars"), strings.HasSuffix(base, ".tfvars.json"):
			found.add(Breach{File: name, Problem: "sets variables, which is the operator's part", Fix: "remove it"})
		}
	}
}

// checkPaths checks that the fields which module.yaml points at are there and can hold what is read from them.
func checkPaths(meta *metadata, providerSpec Variable) {
	if credentials := meta.Spec.Credentials; credentials != nil {
		credentials.Path = checkSecretPath(meta, providerSpec, "spec.credentials.path", credentials.Path, v1alpha1.DefaultCredentialsPath)
		checkKeyFields(meta, providerSpec)
	}
	if meta.Spec.Capacity != nil {
		checkCapacityPaths(meta, providerSpec)
	}
	if meta.Spec.Preview != nil {
		checkPreview(meta, providerSpec)
	}
	checkPlace(meta, providerSpec)
	if userData := meta.Spec.UserData; userData != nil {
		userData.Path = checkSecretPath(meta, providerSpec, "spec.userData.path", userData.Path, v1alpha1.DefaultUserDataPath)
		return
	}
	// Left out, user data is had by the default path where the type has it.
	meta.Spec.UserData = &v1alpha1.ModuleUserData{Key: v1alpha1.DefaultUserDataKey}
	if constraint, exists := fieldType(providerSpec.Type, v1alpha1.DefaultUserDataPath); exists && constraint == cty.String {
		meta.Spec.UserData.Path = v1alpha1.DefaultUserDataPath
	}
}

// checkSecretPath checks the path to the name of a Secret, and answers it; nothing where the field need not be there: the kind through
// which a module without one of its own is served names the Secret itself.
func checkSecretPath(meta *metadata, providerSpec Variable, field, path, byDefault string) string {
	if _, exists := fieldType(providerSpec.Type, path); !exists && path == byDefault && len(meta.Spec.ProviderSpecs) == 0 {
		return ""
	}
	checkPath(meta, providerSpec, field, path, cty.String)
	return path
}

// checkPath checks that the path which a field of module.yaml holds leads to a field of the providerSpec of one of the types.
func checkPath(meta *metadata, providerSpec Variable, field, path string, types ...cty.Type) {
	if constraint, exists := fieldType(providerSpec.Type, path); exists && slices.ContainsFunc(types, constraint.Equals) {
		return
	}
	names := make([]string, 0, len(types))
	for _, one := range types {
		names = append(names, one.FriendlyName())
	}
	meta.breach(field, fmt.Sprintf("is %q, which is no %s field of var.provider_spec", path, strings.Join(names, " or ")), "name the field, its parts joined by dots")
}
