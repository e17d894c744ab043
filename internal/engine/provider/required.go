package provider

import (
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// Requirement is a provider that a module pins to one version, such as hashicorp/aws 6.25.0.
type Requirement struct{ Source, Version string }

func (r Requirement) String() string { return r.Source + " " + r.Version }

// Lacking returns the providers of those that a filesystem mirror lacks for this platform.
func Lacking(mirror string, pinned []Requirement) []Requirement {
	return slices.DeleteFunc(slices.Clone(pinned), func(r Requirement) bool { return r.in(mirror) })
}

// in reports whether a mirror has the provider, unpacked or packed, from any registry: engines
// disagree on the registry of a short source.
func (r Requirement) in(mirror string) bool {
	folder, platform := filepath.FromSlash(r.Source), runtime.GOOS+"_"+runtime.GOARCH
	if strings.Count(r.Source, "/") == 1 {
		folder = filepath.Join("*", folder)
	}
	for _, pattern := range []string{
		filepath.Join(folder, r.Version, platform),
		filepath.Join(folder, "terraform-provider-*_"+r.Version+"_"+platform+".zip"),
	} {
		if found, err := filepath.Glob(filepath.Join(mirror, pattern)); err == nil && len(found) > 0 {
			return true
		}
	}
	return false
}

// Pinned returns the providers that a module pins to one version. The engine checks everything else
// in its files.
func Pinned(files fs.FS) []Requirement {
	names, err := fs.Glob(files, "*.tf")
	if err != nil {
		return nil
	}
	var found []Requirement
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

func required(attributes hclsyntax.Attributes) []Requirement {
	var found []Requirement
	for _, attribute := range attributes {
		value, diags := attribute.Expr.Value(nil)
		if diags.HasErrors() || !value.Type().IsObjectType() {
			continue
		}
		version := strings.TrimSpace(strings.TrimPrefix(textOf(value, "version"), "="))
		one := Requirement{Source: textOf(value, "source"), Version: version}
		if one.Source != "" && one.Version != "" && !strings.ContainsAny(one.Version, "<>=~!,*") {
			found = append(found, one)
		}
	}
	slices.SortFunc(found, func(a, b Requirement) int { return strings.Compare(a.Source, b.Source) })
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
