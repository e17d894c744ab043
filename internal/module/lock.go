package module

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/go-version"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/machine-iac/machine-iac-operator/internal/module/snapshot"
)

// The registries under whose names the two engines look for a provider whose source names no host.
const (
	// OpenTofuHost is OpenTofu's.
	OpenTofuHost = "registry.opentofu.org"
	// TerraformHost is HashiCorp Terraform's.
	TerraformHost = "registry.terraform.io"
)

// Provider is a provider that a module's lock file pins.
type Provider struct {
	// Host is the registry's host name, for example "registry.opentofu.org".
	Host string
	// Namespace is who publishes the provider.
	Namespace string
	// Type is the provider's name.
	Type string
	// Version is the pinned version, without a leading "v".
	Version string
}

// Source answers the provider's full address, host/namespace/type.
func (p Provider) Source() string {
	return p.Host + "/" + p.Namespace + "/" + p.Type
}

// requirement is an entry of required_providers.
type requirement struct {
	source  string
	version string
	place   hcl.Range
}

var (
	sourcePattern = regexp.MustCompile(`^(?:([a-z0-9.-]+(?::[0-9]+)?)/)?([a-z0-9_-]+)/([a-z0-9_-]+)$`)
	// versionPattern keeps to a version that can be a folder's name.
	versionPattern = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+(?:[-+][0-9A-Za-z.+-]+)?$`)
)

// readRequirements answers the entries of every required_providers block by local name, and refuses whatever else a terraform
// block may hold.
func readRequirements(blocks []*hclsyntax.Block, found *report) map[string]requirement {
	required := map[string]requirement{}
	for _, block := range blocks {
		for name, attribute := range block.Body.Attributes {
			if name != "required_version" {
				found.at(attribute.Range(), "terraform."+name, "is not allowed in a provider module", "remove it")
			}
		}
		for _, inner := range block.Body.Blocks {
			switch inner.Type {
			case "required_providers":
				for name, attribute := range inner.Body.Attributes {
					required[name] = readRequirement(name, attribute, found)
				}
			case "backend", "cloud":
				found.at(inner.Range(), title(inner), "is not allowed: the operator keeps the state", "remove it")
			default:
				found.at(inner.Range(), title(inner), "is not allowed in a provider module", "remove it")
			}
		}
	}
	return required
}

func readRequirement(name string, attribute *hclsyntax.Attribute, found *report) requirement {
	what := "required_providers." + name
	read := requirement{place: attribute.Range()}
	value, diags := literal(attribute)
	if diags.HasErrors() || value.IsMarked() || !value.IsWhollyKnown() || value.IsNull() || !value.Type().IsObjectType() {
		found.at(read.place, what, "is not an object of literals", `write { source = "namespace/type", version = "..." }`)
		return read
	}
	for field, target := range map[string]*string{"source": &read.source, "version": &read.version} {
		if value.Type().HasAttribute(field) && value.Type().AttributeType(field).FriendlyName() == "string" && !value.GetAttr(field).IsNull() {
			*target = value.GetAttr(field).AsString()
		}
	}
	if !sourcePattern.MatchString(read.source) {
		found.at(read.place, what, fmt.Sprintf("has the source %q", read.source), "write it as namespace/type or host/namespace/type")
		read.source = ""
	}
	if _, err := version.NewConstraint(read.version); err != nil {
		found.at(read.place, what, fmt.Sprintf("has the version %q, which is no constraint", read.version), `pin it, for example "1.19.0"`)
		read.version = ""
	}
	return read
}

// checkLock reads the lock file and holds it against what the module requires: everything required is pinned to a version
// within its constraint, and nothing else is pinned.
func checkLock(files snapshot.Files, required map[string]requirement, found *report) []Provider {
	content, exists := files[snapshot.LockFile]
	if !exists {
		found.add(Breach{File: snapshot.LockFile, Problem: "is missing", Fix: "write one that pins every required provider"})
		return nil
	}
	body := parse(content, snapshot.LockFile, found)
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
	providers := make([]Provider, 0, len(locked))
	for source, provider := range locked {
		if !named[source] {
			found.at(places[source], fmt.Sprintf("provider %q", source), "is pinned but not required", "remove it, or require it in terraform.tf")
		}
		providers = append(providers, provider)
	}
	slices.SortFunc(providers, func(a, b Provider) int { return cmp.Compare(a.Source(), b.Source()) })
	return providers
}

// checkPinned checks one requirement, and marks the sources that it accounts for in named. A source without a host must be
// pinned for OpenTofu, the default engine, and may be for Terraform.
func checkPinned(name string, need requirement, locked map[string]Provider, named map[string]bool, found *report) {
	what := "required_providers." + name
	sources := []string{need.source}
	if strings.Count(need.source, "/") == 1 {
		sources = []string{OpenTofuHost + "/" + need.source, TerraformHost + "/" + need.source}
	}
	constraint, constraintErr := version.NewConstraint(need.version)
	for i, source := range sources {
		named[source] = true
		provider, pinned := locked[source]
		switch {
		case !pinned && i == 0:
			found.at(need.place, what, fmt.Sprintf("is not pinned: %s has no provider %q", snapshot.LockFile, source), "add it to the lock file")
		case !pinned || constraintErr != nil:
		default:
			if parsed, err := version.NewVersion(provider.Version); err == nil && !constraint.Check(parsed) {
				found.at(need.place, what, fmt.Sprintf("asks for %s, but %s pins %s of %s", need.version, snapshot.LockFile, provider.Version, source),
					"bring the two together")
			}
		}
	}
}

func readLock(body *hclsyntax.Body, found *report) (map[string]Provider, map[string]hcl.Range) {
	locked, places := map[string]Provider{}, map[string]hcl.Range{}
	for name, attribute := range body.Attributes {
		found.at(attribute.Range(), name, "does not belong into a lock file", "remove it")
	}
	for _, block := range body.Blocks {
		source := strings.Join(block.Labels, " ")
		parts := sourcePattern.FindStringSubmatch(source)
		if block.Type != "provider" || parts == nil || parts[1] == "" {
			found.at(block.Range(), title(block), "does not name a provider", `write provider "host/namespace/type"`)
			continue
		}
		if _, twice := locked[source]; twice {
			found.at(block.Range(), title(block), "is pinned a second time", "keep one")
			continue
		}
		pinned, _ := literalString(block.Body.Attributes["version"])
		if !versionPattern.MatchString(pinned) {
			found.at(block.Range(), title(block), fmt.Sprintf("pins the version %q", pinned), `write an exact one, for example version = "1.19.0"`)
		}
		locked[source] = Provider{Host: parts[1], Namespace: parts[2], Type: parts[3], Version: pinned}
		places[source] = block.Range()
	}
	return locked, places
}
