package render

import (
	"fmt"
	"maps"
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// genericValuesPath is the path of provider_spec's attributes in a Machine of a generic kind.
const genericValuesPath = valuePath + ".values"

// genericKind is a kind that serves every module of an engine, such as [v1alpha1.TerraformMachineProviderSpec]. The
// engine's noun is the field that names the module.
type genericKind struct{ module.Traits }

// fields are the fields of a providerSpec of the kind.
func (k genericKind) fields() []string {
	return append(slices.Clone(reserved), k.Noun, "values", "credentialsSecret", "userDataSecret", "driftPolicy")
}

// genericOf returns the kind of a providerSpec, and reports whether it serves any module.
func genericOf(fields map[string]any) (genericKind, bool) {
	if fields["apiVersion"] != v1alpha1.GroupVersion.String() {
		return genericKind{}, false
	}
	for _, one := range module.Engines() {
		if fields["kind"] == one.KindForAny {
			return genericKind{one}, true
		}
	}
	return genericKind{}, false
}

// isGeneric reports whether a providerSpec with these fields is of a generic kind.
func isGeneric(fields map[string]any) bool {
	_, is := genericOf(fields)
	return is
}

// generic reads a providerSpec of a generic kind. Unlike a module's attributes, its own fields are
// strictly typed: a number is not accepted as a string.
type generic struct {
	*findings
	kind   genericKind
	fields map[string]any
	module *module.Module
}

// read applies a spec. It ignores the drift policy, which is not an input of a run.
func (g generic) read(into *spec, machine *machinev1beta1.Machine) {
	g.warnings(machine)
	if failed := g.mismatch(); failed != nil {
		g.fail(failed)
		return
	}
	values, ok := g.object("values", "write the attributes of the "+g.kind.Noun+"'s variable provider_spec")
	if !ok {
		return
	}
	if into.values = values; values == nil {
		into.values = map[string]any{}
	}
	var path string
	if credentials := g.module.Spec().Credentials; credentials != nil {
		path = credentials.Path
	} else if g.fields["credentialsSecret"] != nil {
		g.warn(Warning{
			Path: valuePath + ".credentialsSecret", Message: titleOf(g.module) + " reads no credentials, so it has " +
				"no effect",
			Hint: "leave it out",
		})
	}
	into.credentials = g.reference("credentialsSecret", path, into.values)
	g.requireCredentials(into)
	into.userData = g.reference("userDataSecret", g.module.Spec().UserData.Path, into.values)
}

// mismatch returns an error unless the spec names the module that serves the Machine.
func (g generic) mismatch() *FieldError {
	if g.kind.Engine != g.module.Engine() {
		return &FieldError{
			Path: valuePath + ".kind", Value: show(g.kind.KindForAny),
			Fix:     "name the kind " + g.module.Traits().KindForAny,
			Problem: fmt.Sprintf("it names a %s, but the Machine is served by %s", g.kind.Title, titleOf(g.module)),
		}
	}
	name, failed := g.kind.moduleName(g.fields)
	if failed == nil && name != g.module.Name() {
		failed = &FieldError{
			Path: valuePath + "." + g.kind.Noun, Value: show(name), Fix: "name that one",
			Problem: fmt.Sprintf("it names the %s %s, but the Machine is served by %q", g.kind.Noun, show(name),
				g.module.Name()),
		}
	}
	return failed
}

// titleOf names a module for people.
func titleOf(one *module.Module) string {
	return fmt.Sprintf("the %s %q", one.Traits().Noun, one.Name())
}

// moduleName returns the module that a spec of the kind names.
func (k genericKind) moduleName(fields map[string]any) (string, *FieldError) {
	name, isString := fields[k.Noun].(string)
	if isString && name != "" {
		return name, nil
	}
	return "", &FieldError{
		Path: valuePath + "." + k.Noun, Fault: faultOf(fields[k.Noun]), Value: show(fields[k.Noun]),
		Fix:     "name a " + k.Title + " that is loaded",
		Problem: "the name of a " + k.Title + " is required, but it is " + absence(fields[k.Noun]),
	}
}

// warnings warns about fields that have no effect.
func (g generic) warnings(machine *machinev1beta1.Machine) {
	known := g.kind.fields()
	provides := g.module.Variable(module.VariableProviderSpec).Type
	for _, name := range slices.Sorted(maps.Keys(g.fields)) {
		if slices.Contains(known, name) {
			continue
		}
		hint := spelling(name, known)
		if provides.HasAttribute(name) {
			hint = "write it below values"
		}
		g.unknown(fieldPath(valuePath, name), hint)
	}
	if _, annotated := machine.Annotations[v1alpha1.DriftPolicyAnnotation]; annotated {
		g.warn(Warning{
			Path:    fieldPath("metadata.annotations", v1alpha1.DriftPolicyAnnotation),
			Message: "it has no effect beside a " + g.kind.KindForAny, Hint: "set driftPolicy in the providerSpec",
		})
	}
}

// object returns an optional object, and whether it is valid.
func (g generic) object(name, fix string) (map[string]any, bool) {
	raw := g.fields[name]
	object, ok := raw.(map[string]any)
	if !ok && raw != nil {
		g.fail(&FieldError{Path: valuePath + "." + name, Problem: "an object is required, but it is " +
			nameOf(raw), Fix: fix})
		return nil, false
	}
	return object, true
}

// reference reads a field that names a Secret, and sets the name at the path of values unless it is set. It returns the
// location of the name. An empty path means that the values have no field for it.
func (g generic) reference(field, path string, values map[string]any) reference {
	read := reference{path: valuePath + "." + field + ".name"}
	object, _ := g.object(field, "write it as "+field+`: {name: "text"}`)
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if name != "name" {
			g.unknown(fieldPath(valuePath+"."+field, name), spelling(name, []string{"name"}))
		}
	}
	var inner any
	if path != "" {
		inner = rawAt(values, path)
	}
	if object == nil {
		if isAbsent(inner) {
			return read
		}
		return reference{path: genericValuesPath + "." + path, raw: inner}
	}
	name, isString := object["name"].(string)
	if !isString || name == "" {
		g.fail(nameless(read.path, object["name"]))
		return read
	}
	read.raw = name
	switch other, isString := inner.(string); {
	case path == "":
	case isAbsent(inner):
		put(values, path, name)
	case isString && other != name:
		g.fail(&FieldError{
			Path: read.path, Value: show(name), Fix: "name it once",
			Problem: fmt.Sprintf("the Secret %s is named, but values.%s names %s", show(name), path, show(other)),
		})
	}
	return read
}

// requireCredentials reports that the credentials are missing if the module needs some, and
// prevents a second error about the field in values.
func (g generic) requireCredentials(into *spec) {
	credentials := g.module.Spec().Credentials
	if !needsCredentials(g.module) || !isAbsent(into.credentials.raw) {
		return
	}
	if !g.covers(into.credentials.path) {
		g.fail(nameless(into.credentials.path, into.credentials.raw))
	}
	if credentials.Path != "" {
		put(into.values, credentials.Path, "")
	}
}
