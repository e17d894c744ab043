package render

import (
	"fmt"
	"maps"
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// genericValuesPath is the path of the attributes of provider_spec in a Machine of a kind for any module.
const genericValuesPath = valuePath + ".values"

// genericKind is a kind through which every module of an engine is served.
type genericKind struct {
	kind   string
	engine v1alpha1.Engine
	// names is the field that names the module.
	names string
}

// genericKinds are those of machine-iac.io/v1alpha1: [v1alpha1.TerraformMachineProviderSpec] and [v1alpha1.PulumiMachineProviderSpec].
var genericKinds = []genericKind{
	{kind: v1alpha1.TerraformMachineProviderSpecKind, engine: v1alpha1.EngineTerraform, names: "module"},
	{kind: v1alpha1.PulumiMachineProviderSpecKind, engine: v1alpha1.EnginePulumi, names: "stack"},
}

// fields are those that a providerSpec of the kind may have.
func (k genericKind) fields() []string {
	return append(slices.Clone(reserved), k.names, "values", "credentialsSecret", "userDataSecret", "driftPolicy")
}

// genericOf returns the kind of a providerSpec with the fields, and whether it is one for any module.
func genericOf(fields map[string]any) (genericKind, bool) {
	if fields["apiVersion"] != v1alpha1.GroupVersion.String() {
		return genericKind{}, false
	}
	at := slices.IndexFunc(genericKinds, func(one genericKind) bool { return fields["kind"] == one.kind })
	if at < 0 {
		return genericKind{}, false
	}
	return genericKinds[at], true
}

// isGeneric reports whether a providerSpec with the fields is of a kind for any module.
func isGeneric(fields map[string]any) bool {
	_, is := genericOf(fields)
	return is
}

// generic reads a providerSpec of a kind for any module. Unlike the attributes of a module, its own fields are what they are: no number
// passes for a string.
type generic struct {
	*findings
	kind   genericKind
	fields map[string]any
	module *module.Module
}

// read fills in a spec. The drift policy is no input of a run, and is not looked at.
func (g generic) read(into *spec, machine *machinev1beta1.Machine) {
	g.warnings(machine)
	if failed := g.mismatch(); failed != nil {
		g.fail(failed)
		return
	}
	values, ok := g.object("values", "write the attributes of the "+g.kind.names+"'s variable provider_spec")
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
			Path: valuePath + ".credentialsSecret", Message: titleOf(g.module) + " reads no credentials, so it has no effect",
			Hint: "leave it out",
		})
	}
	into.credentials = g.reference("credentialsSecret", path, into.values)
	g.requireCredentials(into)
	into.userData = g.reference("userDataSecret", g.module.Spec().UserData.Path, into.values)
}

// mismatch returns the error of a spec that names none, or another than the module that serves the Machine; nil when it names that one.
func (g generic) mismatch() *FieldError {
	if g.kind.engine != g.module.Engine() {
		return &FieldError{
			Path: valuePath + ".kind", Value: show(g.kind.kind), Fix: "name the kind " + module.KindForAny(g.module.Engine()),
			Problem: fmt.Sprintf("it names a %s, but the Machine is served by %s", module.Noun(g.kind.engine), titleOf(g.module)),
		}
	}
	name, failed := g.kind.moduleName(g.fields)
	if failed == nil && name != g.module.Name() {
		failed = &FieldError{
			Path: valuePath + "." + g.kind.names, Value: show(name), Fix: "name that one",
			Problem: fmt.Sprintf("it names the %s %s, but the Machine is served by %q", g.kind.names, show(name), g.module.Name()),
		}
	}
	return failed
}

// titleOf names a module for people.
func titleOf(one *module.Module) string {
	if one.Engine() == v1alpha1.EnginePulumi {
		return fmt.Sprintf("the stack %q", one.Name())
	}
	return fmt.Sprintf("the module %q", one.Name())
}

// moduleName returns the module that a spec of the kind names.
func (k genericKind) moduleName(fields map[string]any) (string, *FieldError) {
	name, isString := fields[k.names].(string)
	if isString && name != "" {
		return name, nil
	}
	noun := module.Noun(k.engine)
	return "", &FieldError{
		Path: valuePath + "." + k.names, Fault: faultOf(fields[k.names]), Value: show(fields[k.names]), Fix: "name a " + noun + " that is loaded",
		Problem: "the name of a " + noun + " is required, but it is " + absence(fields[k.names]),
	}
}

// warnings warns of fields that have no effect.
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
			Message: "it has no effect beside a " + g.kind.kind, Hint: "set driftPolicy in the providerSpec",
		})
	}
}

// object returns a field that is an object, nil when it is left out, and whether it is either.
func (g generic) object(name, fix string) (map[string]any, bool) {
	raw := g.fields[name]
	object, ok := raw.(map[string]any)
	if !ok && raw != nil {
		g.fail(&FieldError{Path: valuePath + "." + name, Problem: "an object is required, but it is " + nameOf(raw), Fix: fix})
		return nil, false
	}
	return object, true
}

// reference reads a field that names a Secret, and puts the name at the path of values unless there is one. It returns where the
// name is in the end. The path is empty when the values have no field for it.
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

// requireCredentials fails when nothing names the credentials although the module needs some. What the values lack then is not reported
// a second time.
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
