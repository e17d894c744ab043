package render

import (
	"errors"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// ModuleFor returns the module that serves the Machine's providerSpec: the one that lists its kind, or, where the kind is one for any
// module, the one that it names. A kind that only one module has is served in any version: the Machine API knows the kind by the cluster's
// platform, and but warns of another version. The error is an [Errors] when the providerSpec is at fault.
func ModuleFor(catalog *module.Catalog, machine *machinev1beta1.Machine) (*module.Module, error) {
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
	apiVersion, kind, err := kindOf(fields)
	if err == nil {
		if served, err := catalog.Find(apiVersion, kind); err == nil {
			return served, nil
		}
	}
	if _, isText := fields["apiVersion"].(string); isText || fields["apiVersion"] == nil {
		if served := catalog.OfKind(kind); served != nil {
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
			Path: valuePath + ".kind", Fault: Unsupported, Value: show(kind), Fix: unknown.Fix(),
			Problem: fmt.Sprintf("no provider module serves apiVersion %q, kind %q", shorten(apiVersion), shorten(kind)),
		}}
	}
	return served, err
}

// named returns the module that a providerSpec of the kind names.
func (k genericKind) named(catalog *module.Catalog, fields map[string]any) (*module.Module, error) {
	name, failed := k.moduleName(fields)
	if failed != nil {
		return nil, Errors{failed}
	}
	found, err := catalog.Named(k.engine, name)
	var unknown *module.UnknownModuleError
	if errors.As(err, &unknown) {
		return nil, Errors{{
			Path: valuePath + "." + k.names, Fault: Unsupported, Value: show(name), Fix: unknown.Fix() + "; name one that is loaded",
			Problem: fmt.Sprintf("no %s is called %s", module.Noun(k.engine), show(name)),
		}}
	}
	return found, err
}

// KindOf returns apiVersion and kind of the Machine's providerSpec. The error is an [Errors].
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
				Path: fieldPath(valuePath, name), Fault: faultOf(fields[name]), Fix: "name a kind that a provider module serves",
				Problem: "a string is required, but it is " + absence(fields[name]),
			})
		}
		return text
	}
	apiVersion, kind = read("apiVersion"), read("kind")
	return apiVersion, kind, found.err()
}
