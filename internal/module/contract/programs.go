package contract

import (
	"path"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// requiredProviders is the block that lists the providers of a module.
const requiredProviders = "required_providers"

// knownBlocks are those that the other rules know. Engines add new ones, whose effects are unknown
// here.
var knownBlocks = []string{"terraform", "provider", "variable", "locals", "resource", "data", "ephemeral", "output",
	"check", "moved", "removed", "import"}

// programProviders are types of providers that only run programs, or read and write files, where
// they run.
var programProviders = map[string]string{"external": "runs programs", "shell": "runs programs",
	"local": "reads and writes files of the manager"}

// ProgramProvider returns what a type of provider does besides managing infrastructure, or "" if it
// is allowed.
func ProgramProvider(providerType string) string { return programProviders[providerType] }

// CheckHCL checks that no HCL that an engine may read, including searches, does more than its
// providers. These rules also apply to stored content, whose author is unknown.
func confineHCL(files module.Files, found *Report) {
	isHCL := func(name string) bool {
		return IsRootHCL(name) || IsSearchFolder(path.Dir(name)) && path.Ext(name) == ".tf"
	}
	functions := fileCheck{files: files, found: found, templates: map[string]bool{}}
	for _, name := range files.Names(isHCL) {
		body := ParseHCL(files[name], name, found)
		if body == nil {
			continue
		}
		for _, block := range body.Blocks {
			checkProgramBlock(block, found)
		}
		functions.check(body)
	}
}

func checkProgramBlock(block *hclsyntax.Block, found *Report) {
	switch block.Type {
	case "terraform":
		checkSettings(block, found)
	case "module":
		found.UnsafeAt(block.Range(), Title(block), "calls another module, which lock files do not pin", "put its resources into this folder")
	case "provider":
		checkSignIn(block, found)
	case "resource", "data", "ephemeral", "removed":
		checkNoPrograms(block, found)
	default:
		if !slices.Contains(knownBlocks, block.Type) {
			found.UnsafeAt(block.Range(), Title(block), "is not a block that a provider module may have", "remove it")
		}
	}
}

// checkSettings checks the content of a terraform block. Encryption could run programs, and a
// backend could send the state elsewhere.
func checkSettings(block *hclsyntax.Block, found *Report) {
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
			found.UnsafeAt(inner.Range(), Title(inner), "is not allowed: the operator stores the state", "remove it")
		default:
			found.UnsafeAt(inner.Range(), Title(inner), "is not allowed in a provider module", "remove it")
		}
	}
}

// checkProviders rejects providers that could replace a provisioner. The provider for external data
// is rejected where it is used.
func checkProviders(block *hclsyntax.Block, found *Report) {
	for name, attribute := range block.Body.Attributes {
		source := sourceOf(attribute)
		providerType := source[strings.LastIndex(source, "/")+1:]
		if does := ProgramProvider(providerType); does != "" && providerType != externalType {
			found.UnsafeAt(attribute.Range(), requiredProviders+"."+name, does, "use a provider of the infrastructure")
		}
	}
}

// sourceOf returns the source of a required provider, or "" if it is not a string, which is
// rejected elsewhere.
func sourceOf(attribute *hclsyntax.Attribute) string {
	const field = "source"
	value, diags := attribute.Expr.Value(nil)
	if diags.HasErrors() || value.IsMarked() || !value.IsWhollyKnown() || value.IsNull() || !value.Type().IsObjectType() ||
		!value.Type().HasAttribute(field) {
		return ""
	}
	if source := value.GetAttr(field); source.Type() == cty.String && !source.IsNull() {
		return source.AsString()
	}
	return ""
}

// checkSignIn rejects Kubernetes providers' setting for a program that returns credentials.
func checkSignIn(block *hclsyntax.Block, found *Report) {
	for _, inner := range block.Body.Blocks {
		if inner.Type == "exec" || inner.Type == "dynamic" && slices.Contains(inner.Labels, "exec") {
			found.UnsafeAt(inner.Range(), Title(block)+" exec", "runs a program", "map the credentials in module.yaml")
		}
	}
}

// externalType is the type of the data source, and of its provider, that runs a program.
const externalType = "external"

func checkNoPrograms(block *hclsyntax.Block, found *Report) {
	for _, inner := range block.Body.Blocks {
		if inner.Type == "provisioner" || inner.Type == "connection" {
			found.UnsafeAt(inner.Range(), Title(inner), "runs programs outside of the provider", "remove it; what runs on the instance is user data")
		}
	}
	if block.Type == "data" && len(block.Labels) > 0 && block.Labels[0] == externalType {
		found.UnsafeAt(block.Range(), Title(block), "runs a program", "use a provider's data source")
	}
}
