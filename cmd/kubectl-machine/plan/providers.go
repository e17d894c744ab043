package plan

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/machine-iac/machine-iac-operator/internal/plan/preview"
)

const (
	engineHint   = "run 'make plugin' in the repository, install OpenTofu, or name its file with --engine-path"
	providerHint = "run 'make plugin' in the repository, or fill a folder with 'tofu providers mirror' " +
		"and name it with --provider-mirror"
	// unavailable is how engines report a provider without a source, before "resolve" or "query
	// available".
	unavailable = " provider packages; Could not "
)

// provider is a provider that a module pins.
type provider struct{ source, version string }

// checkProviders returns an error that lists each provider that a module pins and the mirror lacks.
// Without a mirror, the engine gets providers as its own configuration says.
func checkProviders(mirror string, requests []*preview.Request) error {
	if info, err := os.Stat(mirror); err != nil || !info.IsDir() {
		return nil // no mirror, or the planner's error says what is wrong with it
	}
	var missing []string
	for _, one := range requests {
		for _, needed := range pinned(one.Module.Files()) {
			lacks := fmt.Sprintf("%s %s (module %s)", needed.source, needed.version, one.Module.Name())
			if !needed.in(mirror) && !slices.Contains(missing, lacks) {
				missing = append(missing, lacks)
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("missing providers in %s for %s_%s: %s; %s",
		mirror, runtime.GOOS, runtime.GOARCH, strings.Join(missing, ", "), providerHint)
}

// in reports whether a mirror has the provider, unpacked or packed, from any registry: engines
// disagree on the registry of a short source.
func (p provider) in(mirror string) bool {
	folder, platform := filepath.FromSlash(p.source), runtime.GOOS+"_"+runtime.GOARCH
	if strings.Count(p.source, "/") == 1 {
		folder = filepath.Join("*", folder)
	}
	for _, pattern := range []string{
		filepath.Join(folder, p.version, platform),
		filepath.Join(folder, "terraform-provider-*_"+p.version+"_"+platform+".zip"),
	} {
		if found, err := filepath.Glob(filepath.Join(mirror, pattern)); err == nil && len(found) > 0 {
			return true
		}
	}
	return false
}

// pinned returns the providers that a module pins to one version. The engine checks everything else
// in its files.
func pinned(files fs.FS) []provider {
	names, err := fs.Glob(files, "*.tf")
	if err != nil {
		return nil
	}
	var found []provider
	for _, name := range names {
		content, err := fs.ReadFile(files, name)
		if err != nil {
			continue
		}
		parsed, diags := hclsyntax.ParseConfig(content, name, hcl.InitialPos)
		if diags.HasErrors() {
			continue
		}
		for _, outer := range parsed.Body.(*hclsyntax.Body).Blocks {
			for _, inner := range outer.Body.Blocks {
				if outer.Type == "terraform" && inner.Type == "required_providers" {
					found = append(found, required(inner.Body.Attributes)...)
				}
			}
		}
	}
	return found
}

func required(attributes hclsyntax.Attributes) []provider {
	var found []provider
	for _, attribute := range attributes {
		value, diags := attribute.Expr.Value(nil)
		if diags.HasErrors() || !value.Type().IsObjectType() {
			continue
		}
		version := strings.TrimSpace(strings.TrimPrefix(textOf(value, "version"), "="))
		one := provider{source: textOf(value, "source"), version: version}
		if one.source != "" && one.version != "" && !strings.ContainsAny(one.version, "<>=~!,*") {
			found = append(found, one)
		}
	}
	slices.SortFunc(found, func(a, b provider) int { return strings.Compare(a.source, b.source) })
	return found
}

// textOf returns a string of an object; empty for anything else.
func textOf(object cty.Value, name string) string {
	if !object.Type().HasAttribute(name) {
		return ""
	}
	value := object.GetAttr(name)
	if value.Type() != cty.String || value.IsNull() || !value.IsKnown() {
		return ""
	}
	return value.AsString()
}
