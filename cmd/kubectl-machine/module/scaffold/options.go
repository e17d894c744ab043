package scaffold

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// Options configure the new module.
type Options struct {
	// Name of the module: a DNS label that starts with a letter.
	Name string
	// Kind is the providerSpec kind that it serves. Defaults to the name in camel case and
	// MachineProviderSpec.
	Kind string
	// APIVersion is the group and version of Kind. Defaults to NAME.machine-iac.io/v1alpha1.
	APIVersion string
	// Provider is the source of the provider that creates the instance, as namespace/type or
	// host/namespace/type. If empty, the module starts with a resource that is built into the engine.
	Provider string
	// ProviderVersion is the exact version of Provider.
	ProviderVersion string
}

var (
	namePattern       = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)
	kindPattern       = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}$`)
	apiVersionPattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?/v[0-9]+((alpha|beta)[0-9]+)?$`)
	providerPattern   = regexp.MustCompile(`^([a-z0-9.-]+(:[0-9]+)?/)?[a-z0-9_-]+/[a-z][a-z0-9_-]*$`)
	versionPattern    = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]+)?$`)
)

// complete applies defaults and checks every option. Its error joins all problems.
func (o Options) complete() (Options, error) {
	if o.Kind == "" {
		o.Kind = camelCase(o.Name) + "MachineProviderSpec"
	}
	if o.APIVersion == "" {
		o.APIVersion = o.Name + ".machine-iac.io/v1alpha1"
	}
	var problems []error
	check := func(what, value string, pattern *regexp.Regexp, fix string) {
		if !pattern.MatchString(value) {
			problems = append(problems, fmt.Errorf("invalid %s %q: %s", what, value, fix))
		}
	}
	check("name", o.Name, namePattern, "use at most 63 lower-case letters, digits and dashes, starting with a letter")
	if namePattern.MatchString(o.Name) { // the defaults of an invalid name are invalid as well
		check("kind", o.Kind, kindPattern, "use camel case, for example AcmeMachineProviderSpec")
		check("API version", o.APIVersion, apiVersionPattern, "use group/version, for example acme.example.com/v1alpha1")
	}
	switch {
	case o.Provider != "":
		check("provider", o.Provider, providerPattern, "use namespace/type or host/namespace/type, for example hashicorp/aws")
		check("provider version", o.ProviderVersion, versionPattern, "use an exact version, for example 1.19.0")
	case o.ProviderVersion != "":
		problems = append(problems, fmt.Errorf("the provider version %q is set without a provider; set the provider as well",
			o.ProviderVersion))
	}
	if len(problems) > 0 {
		return o, errors.Join(problems...)
	}
	return o, nil
}

// ProviderName returns the local name of the provider: the type, which is the last part of its
// source.
func (o Options) ProviderName() string {
	return o.Provider[strings.LastIndex(o.Provider, "/")+1:]
}

// ProviderAddresses returns the addresses that the lock file pins: a source without a host is in
// the registries of both engines.
func (o Options) ProviderAddresses() []string {
	if strings.Count(o.Provider, "/") == 1 {
		return []string{module.OpenTofuHost + "/" + o.Provider, module.TerraformHost + "/" + o.Provider}
	}
	return []string{o.Provider}
}

func camelCase(name string) string {
	var out strings.Builder
	for part := range strings.SplitSeq(name, "-") {
		if part != "" {
			out.WriteString(strings.ToUpper(part[:1]) + part[1:])
		}
	}
	return out.String()
}
