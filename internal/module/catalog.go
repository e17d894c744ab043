package module

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
)

// Catalog finds a module by the providerSpec kind that it serves, or by its engine and name. It never changes after NewCatalog and may be shared.
type Catalog struct {
	modules []*Module
	served  map[specKind]*Module
}

type specKind struct {
	apiVersion, kind string
}

func (k specKind) String() string { return k.apiVersion + " " + k.kind }

// UnknownKindError says that no module serves a providerSpec kind.
type UnknownKindError struct {
	// APIVersion and Kind are what was asked for.
	APIVersion, Kind string
	// Known are the kinds that are served, each as "apiVersion kind", sorted; those for any module of an engine among them.
	Known []string
}

// Error implements error.
func (e *UnknownKindError) Error() string {
	return fmt.Sprintf("no provider module serves apiVersion %q, kind %q; %s", e.APIVersion, e.Kind, e.Fix())
}

// Fix says which kinds there are.
func (e *UnknownKindError) Fix() string { return known(e.Known) }

// UnknownModuleError says that no module of an engine has a name.
type UnknownModuleError struct {
	// Engine and Name are what was asked for.
	Engine v1alpha1.Engine
	Name   string
	// Known are the names of the modules of that engine that there are, sorted.
	Known []string
}

// Error implements error.
func (e *UnknownModuleError) Error() string {
	return fmt.Sprintf("no %s is called %q; %s", Noun(e.Engine), e.Name, e.Fix())
}

// Fix says which modules of the engine there are.
func (e *UnknownModuleError) Fix() string {
	if len(e.Known) == 0 {
		return fmt.Sprintf("no %s is loaded", Noun(e.Engine))
	}
	return known(e.Known)
}

// known says which kinds or modules there are, for messages.
func known(names []string) string {
	if len(names) == 0 {
		return "no provider module is loaded"
	}
	return "known are " + strings.Join(names, ", ")
}

// Noun returns what people call a module of the engine.
func Noun(engine v1alpha1.Engine) string {
	if engine == v1alpha1.EnginePulumi {
		return "stack"
	}
	return "provider module"
}

// KindForAny returns the kind of machine-iac.io/v1alpha1 through which every module of the engine is served.
func KindForAny(engine v1alpha1.Engine) string {
	if engine == v1alpha1.EnginePulumi {
		return v1alpha1.PulumiMachineProviderSpecKind
	}
	return v1alpha1.TerraformMachineProviderSpecKind
}

// NewCatalog returns a catalogue of the modules. Two modules of one engine and name, or that serve the same kind,
// are an error.
func NewCatalog(modules ...*Module) (*Catalog, error) {
	catalog := &Catalog{modules: slices.Clone(modules), served: map[specKind]*Module{}}
	slices.SortStableFunc(catalog.modules, func(a, b *Module) int {
		return cmp.Or(strings.Compare(a.Name(), b.Name()), strings.Compare(string(b.Engine()), string(a.Engine())))
	})
	for i, one := range catalog.modules {
		if i > 0 && catalog.modules[i-1].Name() == one.Name() && catalog.modules[i-1].Engine() == one.Engine() {
			return nil, fmt.Errorf("building the catalogue of modules: two %ss are called %q; rename one", strings.TrimPrefix(Noun(one.Engine()), "provider "), one.Name())
		}
		if other := catalog.ofPlatform(one.Spec().Platform, i); other != nil {
			return nil, fmt.Errorf("building the catalogue of modules: %q and %q both serve providerSpecs without a kind on %s; load only one of them", other.Name(), one.Name(), one.Spec().Platform)
		}
		for _, entry := range one.Spec().ProviderSpecs {
			for _, apiVersion := range entry.APIVersions {
				key := specKind{apiVersion: apiVersion, kind: entry.Kind}
				if other, taken := catalog.served[key]; taken {
					return nil, fmt.Errorf("building the catalogue of modules: %q and %q both serve %s; load only one of them", other.Name(), one.Name(), key)
				}
				catalog.served[key] = one
			}
		}
	}
	return catalog, nil
}

// Find returns the module that serves the kind, or an [*UnknownKindError].
func (c *Catalog) Find(apiVersion, kind string) (*Module, error) {
	if found, ok := c.served[specKind{apiVersion: apiVersion, kind: kind}]; ok {
		return found, nil
	}
	known := make([]string, 0, len(c.served)+1)
	for _, engine := range []v1alpha1.Engine{v1alpha1.EngineTerraform, v1alpha1.EnginePulumi} {
		if slices.ContainsFunc(c.modules, func(one *Module) bool { return one.Engine() == engine }) {
			known = append(known, specKind{apiVersion: v1alpha1.GroupVersion.String(), kind: KindForAny(engine)}.String())
		}
	}
	for key := range c.served {
		known = append(known, key.String())
	}
	slices.Sort(known)
	return nil, &UnknownKindError{APIVersion: apiVersion, Kind: kind, Known: known}
}

// OfKind returns the only module that serves the kind in any version; nil when there is none, or more than one.
func (c *Catalog) OfKind(kind string) *Module {
	var found *Module
	for _, one := range c.modules {
		switch {
		case !one.ServesKind(kind):
		case found != nil:
			return nil
		default:
			found = one
		}
	}
	return found
}

// OfPlatform returns the module that serves providerSpecs without a kind in clusters on a platform; nil when there is none.
func (c *Catalog) OfPlatform(platform string) *Module { return c.ofPlatform(platform, len(c.modules)) }

// ofPlatform is OfPlatform among the first modules.
func (c *Catalog) ofPlatform(platform string, first int) *Module {
	at := slices.IndexFunc(c.modules[:first], func(one *Module) bool { return platform != "" && one.Spec().Platform == platform })
	if at < 0 {
		return nil
	}
	return c.modules[at]
}

// Named returns the engine's module with the name, or an [*UnknownModuleError].
func (c *Catalog) Named(engine v1alpha1.Engine, name string) (*Module, error) {
	var known []string
	for _, one := range c.modules {
		if one.Engine() != engine {
			continue
		}
		if one.Name() == name {
			return one, nil
		}
		known = append(known, one.Name())
	}
	return nil, &UnknownModuleError{Engine: engine, Name: name, Known: known}
}

// Has reports whether the content of a module has the digest.
func (c *Catalog) Has(digest string) bool {
	return slices.ContainsFunc(c.modules, func(one *Module) bool { return one.Digest() == digest })
}

// Modules returns every module, sorted by name; of one name, the stack comes last.
func (c *Catalog) Modules() []*Module { return slices.Clone(c.modules) }
