// Package confine keeps HCL to what its providers do: it refuses programs, backends, other modules, and functions that read files beside those of
// the module. Its rules hold for content wherever it is from; docs/contracts/module.md lists them.
package confine

import (
	"path"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/machine-iac/machine-iac-operator/internal/module/contract"
	"github.com/machine-iac/machine-iac-operator/internal/module/snapshot"
)

// requiredProviders is the block of a terraform block that says which providers a module uses.
const requiredProviders = "required_providers"

// knownBlocks are those that the other rules know. Engines learn new ones, of which nobody can say here what they do.
var knownBlocks = []string{"terraform", "provider", "variable", "locals", "resource", "data", "ephemeral", "output", "check", "moved", "removed", "import"}

// programProviders are the types of providers that do nothing but run programs, or read and write files, where they run.
var programProviders = map[string]string{"external": "runs programs", "shell": "runs programs", "local": "reads and writes files of the manager"}

// ProgramProvider says what a provider of a type does beside the infrastructure; empty for one that may be used.
func ProgramProvider(providerType string) string { return programProviders[providerType] }

// CheckHCL holds all HCL that an engine may read, searches included, to the rules that keep it from doing more than its providers do. They
// hold for content that is stored as well, of which nobody knows who wrote it.
func CheckHCL(files snapshot.Files, found *contract.Report) {
	isHCL := func(name string) bool {
		return contract.IsRootHCL(name) || contract.IsSearchFolder(path.Dir(name)) && path.Ext(name) == ".tf"
	}
	functions := fileCheck{files: files, found: found, templates: map[string]bool{}}
	for _, name := range files.Names(isHCL) {
		body := contract.ParseHCL(files[name], name, found)
		if body == nil {
			continue
		}
		for _, block := range body.Blocks {
			checkProgramBlock(block, found)
		}
		functions.check(body)
	}
}

func checkProgramBlock(block *hclsyntax.Block, found *contract.Report) {
	switch block.Type {
	case "terraform":
		checkSettings(block, found)
	case "module":
		found.UnsafeAt(block.Range(), contract.Title(block), "calls another module, which no lock file pins", "put its resources into this folder")
	case "provider":
		checkSignIn(block, found)
	case "resource", "data", "ephemeral", "removed":
		checkNoPrograms(block, found)
	default:
		if !slices.Contains(knownBlocks, block.Type) {
			found.UnsafeAt(block.Range(), contract.Title(block), "is not a block that a provider module may have", "remove it")
		}
	}
}

// checkSettings checks what a terraform block holds. Its encryption could run programs, and its backend could send the state elsewhere.
func checkSettings(block *hclsyntax.Block, found *contract.Report) {
	for name, attribute := range block.Body.Attributes {
		if name != "required_version" {
			found.UnsafeAt(attribute.Range(), "terraform."+name, "is not allowed in a provider module", "remove it")
		}
	}
	for _, inner := range block.Body.Blocks {
		switch inner.Type {
		case requiredProviders:
			checkProviders(inner, found)
		case "backend", "cloud":
			found.UnsafeAt(inner.Range(), contract.Title(inner), "is not allowed: the operator keeps the state", "remove it")
		default:
			found.UnsafeAt(inner.Range(), contract.Title(inner), "is not allowed in a provider module", "remove it")
		}
	}
}

// checkProviders refuses providers that would take the part of a provisioner. The one for external data is refused where it is used.
func checkProviders(block *hclsyntax.Block, found *contract.Report) {
	for name, attribute := range block.Body.Attributes {
		source := sourceOf(attribute)
		providerType := source[strings.LastIndex(source, "/")+1:]
		if does := ProgramProvider(providerType); does != "" && providerType != externalType {
			found.UnsafeAt(attribute.Range(), requiredProviders+"."+name, does, "use a provider of the infrastructure")
		}
	}
}

// sourceOf returns the source of a provider that is required; empty where it is no text, which is refused elsewhere.
func sourceOf(attribute *hclsyntax.Attribute) string {
	const field = "source"
	value, diags := attribute.Expr.Value(nil)
	if diags.HasErrors() || value.IsMarked() || !value.IsWhollyKnown() || value.IsNull() || !value.Type().IsObjectType() || !value.Type().HasAttribute(field) {
		return ""
	}
	if source := value.GetAttr(field); source.Type() == cty.String && !source.IsNull() {
		return source.AsString()
	}
	return ""
}

// checkSignIn refuses what providers of Kubernetes call a program that returns credentials.
func checkSignIn(block *hclsyntax.Block, found *contract.Report) {
	for _, inner := range block.Body.Blocks {
		if inner.Type == "exec" || inner.Type == "dynamic" && slices.Contains(inner.Labels, "exec") {
			found.UnsafeAt(inner.Range(), contract.Title(block)+" exec", "runs a program", "map the credentials in module.yaml")
		}
	}
}

// externalType is the type of the data source, and of its provider, that runs a program.
const externalType = "external"

func checkNoPrograms(block *hclsyntax.Block, found *contract.Report) {
	for _, inner := range block.Body.Blocks {
		if inner.Type == "provisioner" || inner.Type == "connection" {
			found.UnsafeAt(inner.Range(), contract.Title(inner), "runs programs beside the provider", "remove it; what runs on the instance is user data")
		}
	}
	if block.Type == "data" && len(block.Labels) > 0 && block.Labels[0] == externalType {
		found.UnsafeAt(block.Range(), contract.Title(block), "runs a program", "use a provider's data source")
	}
}
