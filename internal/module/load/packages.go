package load

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	yamlnode "go.yaml.in/yaml/v3"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/contract"
)

// bridgePlugin serves Terraform's providers.
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

// bridgeParameter is the bridge's parameter: the provider that it bridges.
type bridgeParameter struct {
	Remote *struct {
		URL     string `json:"url"`
		Version string `json:"version"`
	} `json:"remote"`
	Local json.RawMessage `json:"local"`
}

// readPackages reads the declarations in sdks/. Pulumi's YAML finds them anywhere, so they must not
// exist elsewhere.
func readPackages(files module.Files, found *contract.Report) []module.Package {
	var read []module.Package
	for _, name := range files.Names(func(name string) bool {
		return path.Ext(name) == ".yaml" &&
			contract.InfluencesRun(name)
	}) {
		if !isDeclaration(files[name]) {
			continue
		}
		if !strings.HasPrefix(name, packagesFolder+"/") {
			found.Add(contract.Breach{File: name, Problem: "declares a package", Fix: "move it into " + packagesFolder + "/"})
			continue
		}
		one := (&declarationCheck{Document: contract.Document{Report: found, File: name}}).read(files[name])
		if one.Name == "" {
			continue
		}
		if slices.ContainsFunc(read, func(other module.Package) bool { return other.Name == one.Name }) {
			found.Add(contract.Breach{File: name, Problem: fmt.Sprintf("declares the package %q twice", one.Name),
				Fix: "keep one"})
			continue
		}
		read = append(read, one)
	}
	slices.SortFunc(read, func(a, b module.Package) int { return cmp.Compare(a.Name, b.Name) })
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
	contract.Document
	packageDeclaration
}

func (d *declarationCheck) read(content []byte) module.Package {
	if !d.Decode(content, &d.packageDeclaration) {
		return module.Package{}
	}
	if d.DeclarationVersion != 1 {
		d.AtField("packageDeclarationVersion", fmt.Sprintf("is %d", d.DeclarationVersion), "write 1")
	}
	d.checkVersion("version", d.Version)
	one := module.Package{Name: d.Name, Version: d.Version, Plugin: d.Name}
	if d.Parameterization != nil {
		one.Name, one.Version = d.Parameterization.Name, d.Parameterization.Version
		d.checkVersion("parameterization.version", one.Version)
	}
	if one.Name == "" {
		d.AtField("name", "is empty", "name the package")
	}
	if d.Name == bridgePlugin {
		one.Provider = d.bridged()
	}
	served := one.Plugin // under another name: uses of its own name are rejected elsewhere
	if one.Provider != nil {
		served = one.Provider.Type
	}
	if does := programPackage(served); does != "" && served != one.Name {
		d.UnsafeField("name", does, "remove it, and use a package of the infrastructure")
	}
	return one
}

func (d *declarationCheck) checkVersion(field, version string) {
	if !contract.IsExactVersion(version) {
		d.AtField(field, fmt.Sprintf("is %q", version), "write an exact version, for example 1.19.0")
	}
}

// bridged returns the Terraform provider that the package bridges.
func (d *declarationCheck) bridged() *module.Provider {
	const field = "parameterization.value"
	const fix = `write the base64 of {"remote": {"url": "host/namespace/type", "version": "1.19.0"}}, as 'pulumi package add' does`
	if d.Parameterization == nil {
		d.AtField("parameterization", "is missing, so no provider is specified", fix)
		return nil
	}
	raw, err := base64.StdEncoding.DecodeString(d.Parameterization.Value)
	var parameter bridgeParameter
	if err != nil || json.Unmarshal(raw, &parameter) != nil {
		d.AtField(field, "is not the base64 of a JSON object", fix)
		return nil
	}
	if parameter.Local != nil || parameter.Remote == nil {
		d.AtField(field, "does not name a provider by its address; a local path would get into the checkpoint", fix)
		return nil
	}
	provider, named := contract.ParseSource(parameter.Remote.URL)
	if !named {
		d.AtField(field, fmt.Sprintf("names the provider %q", parameter.Remote.URL), fix)
		return nil
	}
	if !contract.IsExactVersion(parameter.Remote.Version) || parameter.Remote.Version != d.Parameterization.Version {
		d.AtField(field, fmt.Sprintf("pins the version %q, but parameterization.version is %q",
			parameter.Remote.Version, d.Parameterization.Version),
			"write the same exact version in both")
	}
	provider.Version = parameter.Remote.Version
	return &provider
}

// bridged returns the Terraform providers that packages bridge, sorted by source.
func bridged(packages []module.Package) []module.Provider {
	var providers []module.Provider
	for _, one := range packages {
		if one.Provider != nil {
			providers = append(providers, *one.Provider)
		}
	}
	slices.SortFunc(providers, func(a, b module.Provider) int { return cmp.Compare(a.Source(), b.Source()) })
	return providers
}
