package module

// The default registries of the two engines, for provider sources without a host.
const (
	// OpenTofuHost is OpenTofu's registry.
	OpenTofuHost = "registry.opentofu.org"
	// TerraformHost is HashiCorp Terraform's registry.
	TerraformHost = "registry.terraform.io"
)

// Provider is a provider that a module's lock file pins.
type Provider struct {
	// Host is the registry's host name, for example "registry.opentofu.org".
	Host string
	// Namespace is the publisher of the provider.
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
	// Name starts the types of its resources.
	Name string
	// Version is the package's version.
	Version string
	// Plugin is what serves it: the package itself, or the bridge to a Terraform provider.
	Plugin string
	// Provider is the bridged provider, or nil.
	Provider *Provider
}
