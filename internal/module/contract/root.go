// Package contract checks that a provider module complies with docs/contracts/module.md. It reads
// module.yaml, variables, outputs, resources, the lock file and the searches, and reports every
// breach with its file, its line and how to fix it.
package contract

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// ProjectFile makes a folder a Pulumi project: a stack rather than an HCL module.
const ProjectFile = "Pulumi.yaml"

// CheckHCL reads an HCL module and checks its contract, except for what package confine checks.
// meta may be nil.
func CheckHCL(files module.Files, meta *Metadata, found *Report) module.Definition {
	checkLayout(files, found)
	if _, exists := files[ProjectFile]; exists {
		found.Add(Breach{File: ProjectFile, Problem: "is a Pulumi program, but spec.engine of module.yaml is Terraform",
			Fix: "write engine: Pulumi, or remove the file"})
	}
	blocks := sortBlocks(parseRoot(files, found), found)
	required := readRequirements(blocks["terraform"], found)
	loaded := module.Definition{
		Variables:      ReadVariables(blocks["variable"], found),
		Providers:      checkLock(files, required, found),
		Instances:      checkResources(blocks, required, found),
		LookupFiles:    files.Names(searchHCL(LookupFolder)),
		AdoptFiles:     files.Names(searchHCL(AdoptFolder)),
		InventoryFiles: files.Names(searchHCL(InventoryFolder)),
		CapacityFiles:  files.Names(searchHCL(CapacityFolder)),
		Bare:           bareRoot(blocks, files, found),
	}
	loaded.Checks = ReadChecks(blocks["check"], loaded.Variables, found)
	checkOutputs(blocks["output"], loaded.Variables, meta, found)
	for _, rules := range searches {
		searchCheck{searchRules: rules, files: files, metadata: meta, required: required, instances: loaded.Instances,
			found: found}.check()
	}
	meta.checkInstanceCheck()
	types := typesOf(blocks["resource"])
	meta.CheckCreates(types, loaded.Instances...)
	meta.CheckPartOfInstance(types, loaded.Instances...)
	meta.CheckDisruptive(types)
	meta.checkWrites(blocks, found)
	confineHCL(files, found)
	return loaded
}

// InfluencesRun reports whether a file may affect a run. Unless known otherwise, it does: HCL can
// read any file next to it.
func InfluencesRun(name string) bool {
	folder, _, nested := strings.Cut(name, "/")
	if nested {
		return folder != "tests" && folder != "examples"
	}
	return path.Ext(name) != ".md"
}

func parseRoot(files module.Files, found *Report) []*hclsyntax.Body {
	var bodies []*hclsyntax.Body
	for _, name := range files.Names(IsRootHCL) {
		if body := ParseHCL(files[name], name, found); body != nil {
			bodies = append(bodies, body)
		}
	}
	return bodies
}

// CheckDocumentation checks that the files exist that users read first.
func CheckDocumentation(files module.Files, found *Report) {
	for _, name := range []string{"README.md", "examples/machineset.yaml"} {
		if _, exists := files[name]; !exists {
			found.Add(Breach{File: name, Problem: "is missing", Fix: "write one"})
		}
	}
}

// checkLayout checks which files exist. It rejects files that an engine would read besides .tf
// files, since the other rules only check those.
func checkLayout(files module.Files, found *Report) {
	tests := files.Names(func(name string) bool { return path.Dir(name) == "tests" && strings.HasSuffix(name, ".tftest.hcl") })
	if len(tests) == 0 {
		found.Add(Breach{File: "tests", Problem: "has no *.tftest.hcl", Fix: "write at least one test with mocked providers"})
	}
	for name := range files {
		if folder := path.Dir(name); folder != "." && !IsSearchFolder(folder) {
			continue
		}
		base := path.Base(name)
		switch {
		case strings.HasSuffix(base, ".tf.json"), strings.HasSuffix(base, ".tofu"), strings.HasSuffix(base, ".tofu.json"):
			found.Add(Breach{File: name, Problem: "is HCL that only some engines read, or is not in native HCL syntax",
				Fix: "use a .tf file", Unsafe: true})
		case base == "override.tf", strings.HasSuffix(base, "_override.tf"):
			found.Add(Breach{File: name, Problem: "overrides other files", Fix: "change those files instead"})
		case strings.HasSuffix(base, ".tfvars"), strings.HasSuffix(base, ".tfvars.json"):
			found.Add(Breach{File: name, Problem: "sets variables, which only the operator may do", Fix: "remove it",
				Unsafe: true})
		}
	}
}

// CheckPaths checks that the fields in module.yaml exist and can hold the values that are read from
// them.
func CheckPaths(meta *Metadata, providerSpec module.Variable) {
	if credentials := meta.Spec.Credentials; credentials != nil {
		credentials.Path = checkSecretPath(meta, providerSpec, "spec.credentials.path", credentials.Path,
			module.DefaultCredentialsPath)
		checkKeyFields(meta, providerSpec)
	}
	if meta.Spec.Capacity != nil {
		checkCapacityPaths(meta, providerSpec)
	}
	if meta.Spec.Preview != nil {
		checkPreview(meta, providerSpec)
	}
	checkFieldAliases(meta, providerSpec.Type)
	for _, path := range slices.Sorted(maps.Keys(meta.Spec.FeatureGates)) {
		if _, exists := fieldType(providerSpec.Type, path); !exists || meta.Spec.FeatureGates[path] == "" {
			meta.AtField("spec.featureGates", fmt.Sprintf("has %q, which is not a field of var.provider_spec or has no gate", path),
				"map the path of a field, joined by dots, to a feature gate")
		}
	}
	checkPlace(meta, providerSpec)
	checkAddressClaims(meta, providerSpec)
	checkAttachedVolumes(meta)
	if userData := meta.Spec.UserData; userData != nil {
		userData.Path = checkSecretPath(meta, providerSpec, "spec.userData.path", userData.Path, module.DefaultUserDataPath)
		return
	}
	// By default, user data is at the default path if the type has it.
	meta.Spec.UserData = &v1alpha1.ModuleUserData{Key: defaultUserDataKey}
	if constraint, exists := fieldType(providerSpec.Type, module.DefaultUserDataPath); exists && constraint == cty.String {
		meta.Spec.UserData.Path = module.DefaultUserDataPath
	}
}

// checkFieldAliases checks that aliases are no fields, and stand for top-level fields.
func checkFieldAliases(meta *Metadata, providerSpec cty.Type) {
	for i, served := range meta.Spec.ProviderSpecs {
		at := fmt.Sprintf("spec.providerSpecs[%d].fieldAliases", i)
		for _, alias := range slices.Sorted(maps.Keys(served.FieldAliases)) {
			field := served.FieldAliases[alias]
			if _, exists := providerSpec.AttributeTypes()[alias]; exists || alias == "" {
				meta.AtField(at, fmt.Sprintf("has the alias %q, which is empty or a field of var.provider_spec", alias), "remove it")
			} else if _, exists := providerSpec.AttributeTypes()[field]; !exists {
				meta.AtField(at, fmt.Sprintf("maps %s to %q, which is not a top-level field of var.provider_spec", alias, field),
					"name a field")
			}
		}
	}
}

// checkSecretPath checks and returns the path to the name of a Secret. It returns "" if an optional
// field is missing: the generic kind, which serves modules without a kind of their own, names the
// Secret itself.
func checkSecretPath(meta *Metadata, providerSpec module.Variable, field, path, byDefault string) string {
	if _, exists := fieldType(providerSpec.Type, path); !exists && path == byDefault && len(meta.Spec.ProviderSpecs) == 0 {
		return ""
	}
	checkPath(meta, providerSpec, field, path, cty.String)
	return path
}

// checkPath checks that the path in a field of module.yaml leads to a field of the providerSpec of
// one of the types.
func checkPath(meta *Metadata, providerSpec module.Variable, field, path string, types ...cty.Type) {
	fieldsOf(meta, providerSpec).field(field, path, types...)
}
