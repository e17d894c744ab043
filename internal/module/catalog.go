package module

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
)

// Catalog finds modules by providerSpec kind, or by engine and name. It is immutable and safe for
// concurrent use.
type Catalog struct {
	modules []*Module
	served  map[specKind]*Module
}

type specKind struct {
	apiVersion, kind string
}

func (k specKind) String() string { return k.apiVersion + " " + k.kind }

// UnknownKindError means that no module serves a providerSpec kind.
type UnknownKindError struct {
	// APIVersion and Kind are the requested ones.
	APIVersion, Kind string
	// Known are the kinds that are served, each as "apiVersion kind", sorted, including those that
	// serve any module of an engine.
	Known []string
}

// Error implements error.
func (e *UnknownKindError) Error() string {
	return fmt.Sprintf("no provider module serves apiVersion %q, kind %q; %s", e.APIVersion, e.Kind, e.Fix())
}

// Fix returns which kinds exist.
func (e *UnknownKindError) Fix() string { return known(e.Known) }

// UnknownModuleError means that an engine has no module with a name.
type UnknownModuleError struct {
	// Engine and Name are the requested ones.
	Engine v1alpha1.Engine
	Name   string
	// Known are the names of the engine's modules, sorted.
	Known []string
}

// Error implements error.
func (e *UnknownModuleError) Error() string {
	return fmt.Sprintf("no %s is called %q; %s", TraitsOf(e.Engine).Title, e.Name, e.Fix())
}

// Fix returns which modules of the engine exist.
func (e *UnknownModuleError) Fix() string {
	if len(e.Known) == 0 {
		return fmt.Sprintf("no %s is loaded", TraitsOf(e.Engine).Title)
	}
	return known(e.Known)
}

// known lists kinds or modules for messages.
func known(names []string) string {
	if len(names) == 0 {
		return "no provider module is loaded"
	}
	return "known are " + strings.Join(names, ", ")
}

// NewCatalog returns a catalog of the modules. It returns an error if two modules have the same engine
// and name, or serve the same kind.
func NewCatalog(modules ...*Module) (*Catalog, error) {
	catalog := &Catalog{modules: slices.Clone(modules), served: map[specKind]*Module{}}
	slices.SortStableFunc(catalog.modules, func(a, b *Module) int {
		return cmp.Or(strings.Compare(a.Name(), b.Name()), strings.Compare(string(b.Engine()), string(a.Engine())))
	})
	for i, one := range catalog.modules {
		if i > 0 && catalog.modules[i-1].Name() == one.Name() && catalog.modules[i-1].Engine() == one.Engine() {
			return nil, fmt.Errorf("building the module catalog: two %ss are called %q; rename one", one.Traits().Noun, one.Name())
		}
		if other := catalog.ofPlatform(one.Spec().Platform, i); other != nil {
			return nil,
				fmt.Errorf("building the module catalog: %q and %q both serve providerSpecs without a kind on %s; load only one of them", other.Name(), one.Name(), one.Spec().Platform)
		}
		for _, entry := range one.Spec().ProviderSpecs {
			for _, apiVersion := range entry.APIVersions {
				key := specKind{apiVersion: apiVersion, kind: entry.Kind}
				if other, taken := catalog.served[key]; taken {
					return nil, fmt.Errorf("building the module catalog: %q and %q both serve %s; load only one of them", other.Name(),
						one.Name(), key)
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
	for _, engine := range engines {
		if slices.ContainsFunc(c.modules, func(one *Module) bool { return one.Engine() == engine.Engine }) {
			known = append(known, specKind{apiVersion: v1alpha1.GroupVersion.String(), kind: engine.KindForAny}.String())
		}
	}
	for key := range c.served {
		known = append(known, key.String())
	}
	slices.Sort(known)
	return nil, &UnknownKindError{APIVersion: apiVersion, Kind: kind, Known: known}
}

// OfKind returns the only module that serves the kind in any version, or nil if there is none or
// more than one.
func (c *Catalog) OfKind(kind string) *Module {
	return c.only(func(one *Module) bool { return one.ServesKind(kind) })
}

// OfAlias returns the only module that serves a kind under the alias, or nil if there is none or
// more than one.
func (c *Catalog) OfAlias(apiVersion, alias string) *Module {
	return c.only(func(one *Module) bool { return one.KindOfAlias(apiVersion, alias) != "" })
}

// only returns the only module that serves something, or nil.
func (c *Catalog) only(serves func(*Module) bool) *Module {
	var found *Module
	for _, one := range c.modules {
		switch {
		case !serves(one):
		case found != nil:
			return nil
		default:
			found = one
		}
	}
	return found
}

// OfPlatform returns the module that serves providerSpecs without a kind in clusters on a platform,
// or nil.
func (c *Catalog) OfPlatform(platform string) *Module { return c.ofPlatform(platform, len(c.modules)) }

// ofPlatform is OfPlatform for the first n modules.
func (c *Catalog) ofPlatform(platform string, first int) *Module {
	at := slices.IndexFunc(c.modules[:first], func(one *Module) bool {
		return platform != "" &&
			one.Spec().Platform == platform
	})
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

// Has reports whether a module with the digest exists.
func (c *Catalog) Has(digest string) bool {
	return slices.ContainsFunc(c.modules, func(one *Module) bool { return one.Digest() == digest })
}

// Modules returns every module, sorted by name. Stacks come after modules of the same name.
func (c *Catalog) Modules() []*Module { return slices.Clone(c.modules) }
