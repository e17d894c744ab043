package scaffold

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// Options say what the new module is called and what it serves.
type Options struct {
	// Name is the module's name: a DNS label that begins with a letter.
	Name string
	// Kind is the providerSpec kind that it serves. Empty means the name in camel case and MachineProviderSpec.
	Kind string
	// APIVersion is the group and version of Kind. Empty means NAME.machine-iac.io/v1alpha1.
	APIVersion string
	// Provider is the source of the provider that makes the instance, as namespace/type or host/namespace/type. Empty means that the
	// module begins with what is part of the engine.
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

// complete fills in defaults and checks every option. Its error joins all that is wrong.
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
			problems = append(problems, fmt.Errorf("the %s is %q; %s", what, value, fix))
		}
	}
	check("name", o.Name, namePattern, "use lower-case letters, digits and dashes, a letter first, 63 at most")
	if namePattern.MatchString(o.Name) { // the defaults of a wrong name are wrong as well
		check("kind", o.Kind, kindPattern, "write it in camel case, for example AcmeMachineProviderSpec")
		check("API version", o.APIVersion, apiVersionPattern, "write group/version, for example acme.example.com/v1alpha1")
	}
	switch {
	case o.Provider != "":
		check("provider", o.Provider, providerPattern, "write its source as namespace/type or host/namespace/type, for example hashicorp/aws")
		check("provider version", o.ProviderVersion, versionPattern, "write an exact one, for example 1.19.0")
	case o.ProviderVersion != "":
		problems = append(problems, fmt.Errorf("the provider version %q has no provider; name the provider as well", o.ProviderVersion))
	}
	if len(problems) > 0 {
		return o, errors.Join(problems...)
	}
	return o, nil
}

// ProviderName returns the name that the provider has inside of the module: the type, the last part of its source.
func (o Options) ProviderName() string {
	return o.Provider[strings.LastIndex(o.Provider, "/")+1:]
}

// ProviderAddresses returns what the lock file pins: a source without a host is in the registries of both engines.
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
