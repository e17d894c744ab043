package render

import (
	"cmp"
	"fmt"
	"maps"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"github.com/zclconf/go-cty/cty"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// spec is a Machine's providerSpec, of any kind, as a module sees it.
type spec struct {
	// values become the variable provider_spec; nil if they are unreadable or for another module.
	values map[string]any
	// at is the path of values in the Machine.
	at string
	// credentials and userData are the names of Secrets.
	credentials, userData reference
}

// reserved are fields of the providerSpec object itself, which a module does not see.
var reserved = []string{"apiVersion", "kind", "metadata"}

// ValuesPath returns the Machine's path of the attributes of the module's variable provider_spec.
func ValuesPath(machine *machinev1beta1.Machine) string {
	if fields, failed := decodeProviderSpec(machine); failed == nil && isGeneric(fields) {
		return genericValuesPath
	}
	return valuePath
}

// readSpec reads the Machine's providerSpec for a module. It adds errors to found.
func readSpec(machine *machinev1beta1.Machine, from *module.Module, found *findings) *spec {
	read := &spec{at: valuePath}
	read.credentials.path, read.userData.path = valuePath+"."+module.DefaultCredentialsPath, valuePath+
		"."+module.DefaultUserDataPath
	fields, failed := decodeProviderSpec(machine)
	kind, isGeneric := genericOf(fields)
	switch {
	case failed != nil:
		found.fail(failed)
	case isGeneric:
		read.at = genericValuesPath
		generic{kind: kind, fields: fields, module: from, findings: found}.read(read, machine)
	default:
		read.own(fields, from, found)
	}
	return read
}

// own reads a providerSpec of the module's own kind, whose fields are the values.
func (s *spec) own(fields map[string]any, from *module.Module, found *findings) {
	apiVersion, _ := fields["apiVersion"].(string)
	given, _ := fields["kind"].(string)
	kind := kindFor(fields, from)
	switch {
	case from.Serves(apiVersion, given):
	case from.ServesKind(kind):
		warning := Warning{
			Path: valuePath + ".apiVersion", Message: fmt.Sprintf("incorrect GroupVersionKind for %s object: %s", kind,
				cut(oneLine(schema.FromAPIVersionAndKind(apiVersion, given).String()), maxReason)), Advice: true,
		}
		if given != "" && given != kind {
			warning.Path, warning.Message = valuePath+".kind", warning.Message+"; write kind: "+kind
		}
		found.warn(warning)
	default:
		found.fail(&FieldError{
			Path: valuePath, Value: show(apiVersion + " " + kind), Fix: "name a kind that it serves",
			Problem: fmt.Sprintf("%s does not serve apiVersion %q, kind %q", titleOf(from), shorten(apiVersion),
				shorten(kind)),
		})
		return
	}
	s.values = maps.Clone(fields)
	for _, name := range reserved {
		delete(s.values, name)
	}
	s.values = spelt(from, kind, s.values, found)
	if credentials := from.Spec().Credentials; credentials != nil && credentials.Path != "" {
		s.credentials = reference{path: valuePath + "." + credentials.Path, raw: rawAt(s.values, credentials.Path)}
	}
	if path := from.Spec().UserData.Path; path != "" {
		s.userData = reference{path: valuePath + "." + path, raw: rawAt(s.values, path)}
	}
}

// kindFor returns the kind of a providerSpec that a module serves: its own, the one that it is an
// alias of, or that of the module's platform if it has none.
func kindFor(fields map[string]any, from *module.Module) string {
	if isAbsent(fields["kind"]) {
		return from.KindOfPlatform()
	}
	apiVersion, _ := fields["apiVersion"].(string)
	kind, _ := fields["kind"].(string)
	return cmp.Or(from.KindOfAlias(apiVersion, kind), kind)
}

// provides returns the variable provider_spec, or cty.DynamicVal.
func (s *spec) provides(from *module.Module, found *findings) cty.Value {
	if s.values == nil {
		return cty.DynamicVal
	}
	return convertValues(s, from.Variable(module.VariableProviderSpec), found)
}

// namesUserData reports whether the spec, as providerSpec, names or may name a user data Secret.
func (s *spec) namesUserData(from *module.Module, providerSpec cty.Value) bool {
	path := from.Spec().UserData.Path
	if path == "" {
		name, _ := s.userData.raw.(string)
		return name != ""
	}
	name := valueAt(providerSpec, path)
	return !name.IsKnown() || !name.IsNull() && name.Type() == cty.String && name.AsString() != ""
}

// rawAt returns the value at a path of field names joined by dots, or nil.
func rawAt(fields map[string]any, path string) any {
	var raw any = fields
	for step := range strings.SplitSeq(path, ".") {
		inner, ok := raw.(map[string]any)
		if !ok {
			return nil
		}
		raw = inner[step]
	}
	return raw
}

// valueAt returns the value at a path of attributes joined by dots. It is null if unset, and
// unknown if not known.
func valueAt(value cty.Value, path string) cty.Value {
	for step := range strings.SplitSeq(path, ".") {
		switch {
		case !value.IsKnown():
			return value
		case value.IsNull() || !value.Type().IsObjectType() || !value.Type().HasAttribute(step):
			return cty.NullVal(cty.String)
		}
		value = value.GetAttr(step)
	}
	return value
}
