package module

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

// Source returns the provider's full address, host/namespace/type.
func (p Provider) Source() string {
	return p.Host + "/" + p.Namespace + "/" + p.Type
}

// Package is a Pulumi package that a stack pins in sdks/.
type Package struct {
	// Name is what the types of its resources begin with.
	Name string
	// Version is the package's version.
	Version string
	// Plugin and PluginVersion are what serves it: the package itself, or what bridges a Terraform provider.
	Plugin, PluginVersion string
	// Provider is the bridged provider; nil where there is none.
	Provider *Provider
}
