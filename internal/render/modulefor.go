package render

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// ModuleFor returns the module that serves the Machine's providerSpec: the one that lists its kind,
// or the one that a generic kind names. A kind that only one module has is served in any version,
// since the Machine API identifies it by the cluster's platform and only warns about another
// version. An alias of a kind is served without an apiVersion, or in any version of the kind's
// group. A providerSpec without a kind is served by the module for the cluster's platform, which is
// empty if unknown. The error is an [Errors] if the providerSpec is at fault.
func ModuleFor(catalog *module.Catalog, machine *machinev1beta1.Machine, platform string) (*module.Module, error) {
	if catalog == nil || machine == nil {
		return nil, errors.New("choosing a module: a catalogue and a Machine are required")
	}
	fields, failed := decodeProviderSpec(machine)
	if failed != nil {
		return nil, Errors{failed}
	}
	if kind, is := genericOf(fields); is {
		return kind.named(catalog, fields)
	}
	if served := catalog.OfPlatform(platform); served != nil && isAbsent(fields["kind"]) {
		return served, nil
	}
	apiVersion, kind, err := kindOf(fields)
	if err == nil {
		if served, err := catalog.Find(apiVersion, kind); err == nil {
			return served, nil
		}
	}
	if _, isText := fields["apiVersion"].(string); isText || fields["apiVersion"] == nil {
		if served := cmp.Or(catalog.OfKind(kind), catalog.OfAlias(apiVersion, kind)); served != nil {
			return served, nil
		}
	}
	if err != nil {
		return nil, err
	}
	served, err := catalog.Find(apiVersion, kind)
	var unknown *module.UnknownKindError
	if errors.As(err, &unknown) {
		return nil, Errors{{
			Path: valuePath + ".kind", Fault: Unsupported, Value: show(kind), Fix: didYouMean(kind, unknown.Known) +
				unknown.Fix(),
			Problem: fmt.Sprintf("no provider module serves apiVersion %q, kind %q", shorten(apiVersion),
				shorten(kind)),
		}}
	}
	return served, err
}

// didYouMean returns a question that suggests the known kind closest to an unknown one, or "" if
// none is close. Known kinds include their apiVersion.
func didYouMean(kind string, known []string) string {
	kinds := make([]string, 0, len(known))
	for _, one := range known {
		_, name, _ := strings.Cut(one, " ")
		kinds = append(kinds, name)
	}
	if best := closest(kind, kinds); best != "" {
		return "did you mean " + best + "? "
	}
	return ""
}

// named returns the module that a providerSpec of the kind names.
func (k genericKind) named(catalog *module.Catalog, fields map[string]any) (*module.Module, error) {
	name, failed := k.moduleName(fields)
	if failed != nil {
		return nil, Errors{failed}
	}
	found, err := catalog.Named(k.Engine, name)
	var unknown *module.UnknownModuleError
	if errors.As(err, &unknown) {
		return nil, Errors{{
			Path: valuePath + "." + k.Noun, Fault: Unsupported, Value: show(name),
			Fix:     unknown.Fix() + "; name one that is loaded",
			Problem: fmt.Sprintf("no %s is called %s", k.Title, show(name)),
		}}
	}
	return found, err
}

// KindOf returns the apiVersion and kind of the Machine's providerSpec. The error is an [Errors].
func KindOf(machine *machinev1beta1.Machine) (apiVersion, kind string, err error) {
	fields, failed := decodeProviderSpec(machine)
	if failed != nil {
		return "", "", Errors{failed}
	}
	return kindOf(fields)
}

func kindOf(fields map[string]any) (apiVersion, kind string, err error) {
	found := &findings{}
	read := func(name string) string {
		text, ok := fields[name].(string)
		if !ok || text == "" {
			found.fail(&FieldError{
				Path: fieldPath(valuePath, name), Fault: faultOf(fields[name]),
				Fix:     "name a kind that a provider module serves",
				Problem: "a string is required, but it is " + absence(fields[name]),
			})
		}
		return text
	}
	apiVersion, kind = read("apiVersion"), read("kind")
	return apiVersion, kind, found.err()
}
