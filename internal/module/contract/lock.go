package contract

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/go-version"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// requirement is an entry of required_providers.
type requirement struct {
	source   string
	version  string
	position hcl.Range
}

var (
	sourcePattern = regexp.MustCompile(`^(?:([a-z0-9.-]+(?::[0-9]+)?)/)?([a-z0-9_-]+)/([a-z0-9_-]+)$`)
	// versionPattern matches versions that can be used as a folder name.
	versionPattern = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+(?:[-+][0-9A-Za-z.+-]+)?$`)
)

// ParseSource parses a full provider address, host/namespace/type.
func ParseSource(source string) (provider module.Provider, ok bool) {
	parts := sourcePattern.FindStringSubmatch(source)
	if parts == nil || parts[1] == "" {
		return module.Provider{}, false
	}
	return module.Provider{Host: parts[1], Namespace: parts[2], Type: parts[3]}, true
}

// IsExactVersion reports whether a text is a version rather than a constraint.
func IsExactVersion(text string) bool { return versionPattern.MatchString(text) }

// readRequirements returns the entries of all required_providers blocks by local name. Package
// confine rejects anything else in a terraform block.
func readRequirements(blocks []*hclsyntax.Block, found *Report) map[string]requirement {
	required := map[string]requirement{}
	for _, block := range blocks {
		for _, inner := range block.Body.Blocks {
			if inner.Type != "required_providers" {
				continue
			}
			for name, attribute := range inner.Body.Attributes {
				required[name] = readRequirement(name, attribute, found)
			}
		}
	}
	return required
}

func readRequirement(name string, attribute *hclsyntax.Attribute, found *Report) requirement {
	what := "required_providers." + name
	read := requirement{position: attribute.Range()}
	value, diags := literal(attribute)
	if diags.HasErrors() || value.IsMarked() || !value.IsWhollyKnown() || value.IsNull() || !value.Type().IsObjectType() {
		found.At(read.position, what, "is not an object with literal values",
			`write { source = "namespace/type", version = "..." }`)
		return read
	}
	for field, target := range map[string]*string{"source": &read.source, "version": &read.version} {
		if value.Type().HasAttribute(field) && value.Type().AttributeType(field).FriendlyName() == "string" &&
			!value.GetAttr(field).IsNull() {
			*target = value.GetAttr(field).AsString()
		}
	}
	if !sourcePattern.MatchString(read.source) {
		found.At(read.position, what, fmt.Sprintf("has the source %q", read.source),
			"write it as namespace/type or host/namespace/type")
		read.source = ""
	}
	if _, err := version.NewConstraint(read.version); err != nil {
		found.At(read.position, what, fmt.Sprintf("has the version %q, which is not a valid constraint", read.version),
			`pin it, for example "1.19.0"`)
		read.version = ""
	}
	return read
}

// checkLock compares the lock file with what the module requires: everything required must be
// pinned to a matching version, and nothing else may be pinned.
func checkLock(files module.Files, required map[string]requirement, found *Report) []module.Provider {
	content, exists := files[module.LockFile]
	if !exists {
		found.Add(Breach{File: module.LockFile, Problem: "is missing", Fix: "create one that pins every required provider"})
		return nil
	}
	body := ParseHCL(content, module.LockFile, found)
	if body == nil {
		return nil
	}
	locked, places := readLock(body, found)
	named := map[string]bool{}
	for name, need := range required {
		if need.source != "" {
			checkPinned(name, need, locked, named, found)
		}
	}
	providers := make([]module.Provider, 0, len(locked))
	for source, provider := range locked {
		if !named[source] {
			found.At(places[source], fmt.Sprintf("provider %q", source), "is pinned but not required",
				"remove it, or require it in terraform.tf")
		}
		providers = append(providers, provider)
	}
	slices.SortFunc(providers, func(a, b module.Provider) int { return cmp.Compare(a.Source(), b.Source()) })
	return providers
}

// checkPinned checks one requirement and adds its sources to named. A source without a host must be
// pinned for OpenTofu, the default engine, and may be pinned for Terraform.
func checkPinned(name string, need requirement, locked map[string]module.Provider, named map[string]bool,
	found *Report) {
	what := "required_providers." + name
	sources := []string{need.source}
	if strings.Count(need.source, "/") == 1 {
		sources = []string{module.OpenTofuHost + "/" + need.source, module.TerraformHost + "/" + need.source}
	}
	constraint, constraintErr := version.NewConstraint(need.version)
	for i, source := range sources {
		named[source] = true
		provider, pinned := locked[source]
		switch {
		case !pinned && i == 0:
			found.At(need.position, what, fmt.Sprintf("is not pinned: %s has no provider %q", module.LockFile, source), "add it to the lock file")
		case !pinned || constraintErr != nil:
		default:
			if parsed, err := version.NewVersion(provider.Version); err == nil && !constraint.Check(parsed) {
				found.At(need.position, what, fmt.Sprintf("requires %s, but %s pins %s of %s", need.version, module.LockFile, provider.Version, source),
					"make them match")
			}
		}
	}
}

func readLock(body *hclsyntax.Body, found *Report) (map[string]module.Provider, map[string]hcl.Range) {
	locked, places := map[string]module.Provider{}, map[string]hcl.Range{}
	for name, attribute := range body.Attributes {
		found.At(attribute.Range(), name, "does not belong in a lock file", "remove it")
	}
	for _, block := range body.Blocks {
		source := strings.Join(block.Labels, " ")
		provider, named := ParseSource(source)
		if block.Type != "provider" || !named {
			found.At(block.Range(), Title(block), "does not name a provider", `write provider "host/namespace/type"`)
			continue
		}
		if _, twice := locked[source]; twice {
			found.At(block.Range(), Title(block), "is pinned twice", "keep one")
			continue
		}
		pinned, _ := literalString(block.Body.Attributes["version"])
		if !IsExactVersion(pinned) {
			found.At(block.Range(), Title(block), fmt.Sprintf("pins the version %q", pinned),
				`write an exact version, for example version = "1.19.0"`)
		}
		provider.Version = pinned
		locked[source] = provider
		places[source] = block.Range()
	}
	return locked, places
}
