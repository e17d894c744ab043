package module

import (
	"fmt"
	"slices"
	"strings"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
)

// Catalog finds a module by the providerSpec kind that it serves, or by its name. It never changes after NewCatalog and may be shared.
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
	// Known are the kinds that are served, each as "apiVersion kind", sorted; the one for any module among them.
	Known []string
}

// Error implements error.
func (e *UnknownKindError) Error() string {
	return fmt.Sprintf("no provider module serves apiVersion %q, kind %q; %s", e.APIVersion, e.Kind, Known(e.Known))
}

// UnknownModuleError says that no module has a name.
type UnknownModuleError struct {
	// Name is what was asked for.
	Name string
	// Known are the names of the modules that there are, sorted.
	Known []string
}

// Error implements error.
func (e *UnknownModuleError) Error() string {
	return fmt.Sprintf("no provider module is called %q; %s", e.Name, Known(e.Known))
}

// Known says which kinds or modules there are, for messages.
func Known(names []string) string {
	if len(names) == 0 {
		return "no provider module is loaded"
	}
	return "known are " + strings.Join(names, ", ")
}

// NewCatalog answers a catalogue of the modules. Two modules of one name, or that serve the same kind, are an error.
func NewCatalog(modules ...*Module) (*Catalog, error) {
	catalog := &Catalog{modules: slices.Clone(modules), served: map[specKind]*Module{}}
	slices.SortStableFunc(catalog.modules, func(a, b *Module) int { return strings.Compare(a.name, b.name) })
	for i, one := range catalog.modules {
		if i > 0 && catalog.modules[i-1].name == one.name {
			return nil, fmt.Errorf("building the catalogue of modules: two modules are called %q; rename one", one.name)
		}
		for _, entry := range one.spec.ProviderSpecs {
			for _, apiVersion := range entry.APIVersions {
				key := specKind{apiVersion: apiVersion, kind: entry.Kind}
				if other, taken := catalog.served[key]; taken {
					return nil, fmt.Errorf("building the catalogue of modules: %q and %q both serve %s; load only one of them", other.name, one.name, key)
				}
				catalog.served[key] = one
			}
		}
	}
	return catalog, nil
}

// Find answers the module that serves the kind, or an [*UnknownKindError].
func (c *Catalog) Find(apiVersion, kind string) (*Module, error) {
	if found, ok := c.served[specKind{apiVersion: apiVersion, kind: kind}]; ok {
		return found, nil
	}
	known := make([]string, 0, len(c.served)+1)
	if len(c.modules) > 0 {
		known = append(known, specKind{apiVersion: v1alpha1.GroupVersion.String(), kind: v1alpha1.TerraformMachineProviderSpecKind}.String())
	}
	for key := range c.served {
		known = append(known, key.String())
	}
	slices.Sort(known)
	return nil, &UnknownKindError{APIVersion: apiVersion, Kind: kind, Known: known}
}

// OfKind answers the only module that serves the kind in any version; nil when there is none, or more than one.
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

// Named answers the module with the name, or an [*UnknownModuleError].
func (c *Catalog) Named(name string) (*Module, error) {
	known := make([]string, 0, len(c.modules))
	for _, one := range c.modules {
		if one.name == name {
			return one, nil
		}
		known = append(known, one.name)
	}
	return nil, &UnknownModuleError{Name: name, Known: known}
}

// Modules answers every module, sorted by name.
func (c *Catalog) Modules() []*Module { return slices.Clone(c.modules) }
