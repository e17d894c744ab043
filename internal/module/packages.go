package module

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	yamlnode "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/internal/module/snapshot"
)

// Package is a package of Pulumi's that a stack pins in sdks/.
type Package struct {
	// Name is what the types of its resources begin with.
	Name string
	// Version is the package's version.
	Version string
	// Plugin and PluginVersion are what serves it: the package itself, or what bridges a provider of Terraform's.
	Plugin, PluginVersion string
	// Provider is the bridged provider; nil where there is none.
	Provider *Provider
}

// Packages answers what a stack pins, sorted by name.
func (m *Module) Packages() []Package { return slices.Clone(m.packages) }

// bridgePlugin serves providers of Terraform's.
const bridgePlugin = "terraform-provider"

// packageDeclaration is a file in sdks/, as `pulumi package add` writes it.
type packageDeclaration struct {
	DeclarationVersion int    `json:"packageDeclarationVersion"`
	Name               string `json:"name"`
	Version            string `json:"version"`
	DownloadURL        string `json:"downloadUrl,omitempty"`
	Parameterization   *struct {
		Name    string `json:"name"`
		Version string `json:"version"`
		Value   string `json:"value"`
	} `json:"parameterization,omitempty"`
}

// bridgeParameter is what the bridge is told of the provider that it bridges.
type bridgeParameter struct {
	Remote *struct {
		URL     string `json:"url"`
		Version string `json:"version"`
	} `json:"remote"`
	Local json.RawMessage `json:"local"`
}

// readPackages reads the declarations in sdks/. Pulumi's YAML takes one from anywhere, so there must be none elsewhere.
func readPackages(files snapshot.Files, found *report) []Package {
	var read []Package
	for _, name := range files.Names(func(name string) bool { return path.Ext(name) == ".yaml" && influencesRun(name) }) {
		if !isDeclaration(files[name]) {
			continue
		}
		if !strings.HasPrefix(name, packagesFolder+"/") {
			found.add(Breach{File: name, Problem: "declares a package", Fix: "move it into " + packagesFolder + "/"})
			continue
		}
		one := (&declarationCheck{document: document{report: found, file: name}}).read(files[name])
		if one.Name == "" {
			continue
		}
		if slices.ContainsFunc(read, func(other Package) bool { return other.Name == one.Name }) {
			found.add(Breach{File: name, Problem: fmt.Sprintf("declares the package %q a second time", one.Name), Fix: "keep one"})
			continue
		}
		read = append(read, one)
	}
	slices.SortFunc(read, func(a, b Package) int { return cmp.Compare(a.Name, b.Name) })
	return read
}

func isDeclaration(content []byte) bool {
	var fields map[string]any
	if yamlnode.Unmarshal(content, &fields) != nil {
		return false
	}
	_, is := fields["packageDeclarationVersion"]
	return is
}

// declarationCheck is a file in sdks/ while it is checked.
type declarationCheck struct {
	document
	packageDeclaration
}

func (d *declarationCheck) read(content []byte) Package {
	if !d.decode(content, &d.packageDeclaration) {
		return Package{}
	}
	if d.DeclarationVersion != 1 {
		d.breach("packageDeclarationVersion", fmt.Sprintf("is %d", d.DeclarationVersion), "write 1")
	}
	d.checkVersion("version", d.Version)
	one := Package{Name: d.Name, Version: d.Version, Plugin: d.Name, PluginVersion: d.Version}
	if d.Parameterization != nil {
		one.Name, one.Version = d.Parameterization.Name, d.Parameterization.Version
		d.checkVersion("parameterization.version", one.Version)
	}
	if one.Name == "" {
		d.breach("name", "is empty", "name the package")
	}
	if d.Name == bridgePlugin {
		one.Provider = d.bridged()
	}
	return one
}

func (d *declarationCheck) checkVersion(field, version string) {
	if !versionPattern.MatchString(version) {
		d.breach(field, fmt.Sprintf("is %q", version), "write an exact version, for example 1.19.0")
	}
}

// bridged answers the provider of Terraform's that the package bridges.
func (d *declarationCheck) bridged() *Provider {
	const field = "parameterization.value"
	const fix = `write the base64 of {"remote": {"url": "host/namespace/type", "version": "1.19.0"}}, as 'pulumi package add' does`
	if d.Parameterization == nil {
		d.breach("parameterization", "is missing, so that no provider is named", fix)
		return nil
	}
	raw, err := base64.StdEncoding.DecodeString(d.Parameterization.Value)
	var parameter bridgeParameter
	if err != nil || json.Unmarshal(raw, &parameter) != nil {
		d.breach(field, "is not the base64 of a JSON object", fix)
		return nil
	}
	if parameter.Local != nil || parameter.Remote == nil {
		d.breach(field, "names no provider by its address; a path of one machine would get into the checkpoint", fix)
		return nil
	}
	parts := sourcePattern.FindStringSubmatch(parameter.Remote.URL)
	if parts == nil || parts[1] == "" {
		d.breach(field, fmt.Sprintf("names the provider %q", parameter.Remote.URL), fix)
		return nil
	}
	if !versionPattern.MatchString(parameter.Remote.Version) || parameter.Remote.Version != d.Parameterization.Version {
		d.breach(field, fmt.Sprintf("pins the version %q, but parameterization.version is %q", parameter.Remote.Version, d.Parameterization.Version),
			"bring the two together, to one exact version")
	}
	return &Provider{Host: parts[1], Namespace: parts[2], Type: parts[3], Version: parameter.Remote.Version}
}

// bridged answers the providers of Terraform's that packages bridge, sorted by source.
func bridged(packages []Package) []Provider {
	var providers []Provider
	for _, one := range packages {
		if one.Provider != nil {
			providers = append(providers, *one.Provider)
		}
	}
	slices.SortFunc(providers, func(a, b Provider) int { return cmp.Compare(a.Source(), b.Source()) })
	return providers
}

// decodeYAML parses YAML strictly into nodes.
func decodeYAML(content []byte, into *yamlnode.Node) error {
	if _, err := yaml.YAMLToJSONStrict(content); err != nil {
		return err
	}
	return yamlnode.Unmarshal(content, into)
}
