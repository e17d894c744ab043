// Package contract checks a provider module against docs/contracts/module.md: it reads module.yaml, variables, outputs, resources, the lock file
// and the searches, and reports every breach with its file, its line and what to do about it.
package contract

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/snapshot"
)

// ProjectFile is the name of a file that makes a folder a Pulumi project: a stack, and no module in HCL.
const ProjectFile = "Pulumi.yaml"

// CheckHCL reads a module that OpenTofu or Terraform runs, and checks what the contract says of those, but for what the package confine does. meta
// may be nil.
func CheckHCL(files snapshot.Files, meta *Metadata, found *Report) module.Definition {
	checkLayout(files, found)
	if _, exists := files[ProjectFile]; exists {
		found.Add(Breach{File: ProjectFile, Problem: "is a program of Pulumi, but spec.engine of module.yaml is Terraform", Fix: "write engine: Pulumi, or remove the file"})
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
		InstanceCheck:  instanceCheckHCL(blocks, files),
	}
	loaded.Checks = ReadChecks(blocks["check"], loaded.Variables, found)
	checkOutputs(blocks["output"], found)
	for _, rules := range searches {
		searchCheck{searchRules: rules, files: files, metadata: meta, required: required, instances: loaded.Instances, found: found}.check()
	}
	meta.checkInstanceCheck(blocks["provider"], loaded.InstanceCheck)
	meta.CheckCreates(typesOf(blocks["resource"]), loaded.Instances...)
	return loaded
}

// InfluencesRun reports whether a file can make a difference to a run. Whatever is not known to make none does: HCL can read
// any file beside it.
func InfluencesRun(name string) bool {
	folder, _, nested := strings.Cut(name, "/")
	if nested {
		return folder != "tests" && folder != "examples"
	}
	return path.Ext(name) != ".md"
}

func parseRoot(files snapshot.Files, found *Report) []*hclsyntax.Body {
	var bodies []*hclsyntax.Body
	for _, name := range files.Names(IsRootHCL) {
		if body := ParseHCL(files[name], name, found); body != nil {
			bodies = append(bodies, body)
		}
	}
	return bodies
}

// CheckDocumentation checks that the files are there which people read first.
func CheckDocumentation(files snapshot.Files, found *Report) {
	for _, name := range []string{"README.md", "examples/machineset.yaml"} {
		if _, exists := files[name]; !exists {
			found.Add(Breach{File: name, Problem: "is missing", Fix: "write one"})
		}
	}
}

// checkLayout checks which files there are. Files that would change what the engine reads beside the .tf files are refused,
// since the other rules look at the .tf files only.
func checkLayout(files snapshot.Files, found *Report) {
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
			found.Add(Breach{File: name, Problem: "is HCL that only some engines read, or not HCL's own syntax", Fix: "write a .tf file", Unsafe: true})
		case base == "override.tf", strings.HasSuffix(base, "_override.tf"):
			found.Add(Breach{File: name, Problem: "overrides what other files say", Fix: "change those files instead"})
		case strings.HasSuffix(base, ".tfvars"), strings.HasSuffix(base, ".tfvars.json"):
			found.Add(Breach{File: name, Problem: "sets variables, which is the operator's part", Fix: "remove it", Unsafe: true})
		}
	}
}

// CheckPaths checks that the fields which module.yaml points at are there and can hold what is read from them.
func CheckPaths(meta *Metadata, providerSpec module.Variable) {
	if credentials := meta.Spec.Credentials; credentials != nil {
		credentials.Path = checkSecretPath(meta, providerSpec, "spec.credentials.path", credentials.Path, module.DefaultCredentialsPath)
		checkKeyFields(meta, providerSpec)
	}
	if meta.Spec.Capacity != nil {
		checkCapacityPaths(meta, providerSpec)
	}
	if meta.Spec.Preview != nil {
		checkPreview(meta, providerSpec)
	}
	checkPlace(meta, providerSpec)
	checkAddressClaims(meta, providerSpec)
	checkAttachedVolumes(meta)
	if userData := meta.Spec.UserData; userData != nil {
		userData.Path = checkSecretPath(meta, providerSpec, "spec.userData.path", userData.Path, module.DefaultUserDataPath)
		return
	}
	// Left out, user data is had by the default path where the type has it.
	meta.Spec.UserData = &v1alpha1.ModuleUserData{Key: defaultUserDataKey}
	if constraint, exists := fieldType(providerSpec.Type, module.DefaultUserDataPath); exists && constraint == cty.String {
		meta.Spec.UserData.Path = module.DefaultUserDataPath
	}
}

// checkSecretPath checks and returns the path to the name of a Secret. It returns nothing where the field is optional: the kind through
// which a module without one of its own is served names the Secret itself.
func checkSecretPath(meta *Metadata, providerSpec module.Variable, field, path, byDefault string) string {
	if _, exists := fieldType(providerSpec.Type, path); !exists && path == byDefault && len(meta.Spec.ProviderSpecs) == 0 {
		return ""
	}
	checkPath(meta, providerSpec, field, path, cty.String)
	return path
}

// checkPath checks that the path which a field of module.yaml holds leads to a field of the providerSpec of one of the types.
func checkPath(meta *Metadata, providerSpec module.Variable, field, path string, types ...cty.Type) {
	if constraint, exists := fieldType(providerSpec.Type, path); exists && slices.ContainsFunc(types, constraint.Equals) {
		return
	}
	names := make([]string, 0, len(types))
	for _, one := range types {
		names = append(names, one.FriendlyName())
	}
	meta.AtField(field, fmt.Sprintf("is %q, which is no %s field of var.provider_spec", path, strings.Join(names, " or ")), "name the field, its parts joined by dots")
}
